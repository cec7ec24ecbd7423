"""Load: take a window, plan, stage, and announce its contributions."""
