"""Other systems that know of cost and usage, read only: OpenCost, LiteLLM, Prometheus.

What they answer becomes plain rows here; nothing here knows a table of ours.
"""
