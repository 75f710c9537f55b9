"""Doors that lead into several rooms at once: manifests, the demo."""
