"""Which node a pod takes, of those that could take it: policies as plain functions."""
