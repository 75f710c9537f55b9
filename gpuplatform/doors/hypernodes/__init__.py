"""Volcano's HyperNodes: a topology whose domains are written down, node by node.

They are kept as labels of the nodes and as the levels of one topology, ``hypernodes``, so that
flavors, placement and pages know nothing of their own about them (``placement.md`` 2.4).
"""
