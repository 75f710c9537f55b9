"""RUNNING: nodes, workloads, the cycle that admits and places."""
