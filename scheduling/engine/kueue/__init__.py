"""Kueue's own cycle, on the quota tree, candidates and nodes that both profiles share."""
