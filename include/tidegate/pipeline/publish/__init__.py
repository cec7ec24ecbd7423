"""From contributions to a standing revision: evaluate, propose, judge, commit."""
