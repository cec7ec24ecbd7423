"""Turn contributions into the current revision: evaluate, propose, judge, commit."""
