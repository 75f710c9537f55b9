"""Last month under these quotas: past work replayed under edited quotas, and what it costs.

``asking`` takes the question, ``running`` plays it as a task, ``costing`` bills what came out with
the one arithmetic of money, ``telling`` gives the result its shape.
"""
