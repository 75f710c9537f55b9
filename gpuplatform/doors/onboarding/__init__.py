"""A new team in one go: itself, its people, namespaces, queue, doors and budget, all or nothing.

Every part is saved by the service that its own page calls; no rule stands here a second time.
"""
