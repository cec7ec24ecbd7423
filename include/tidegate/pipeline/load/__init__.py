"""From what changed to announced contributions: take a window, plan, stage, announce."""
