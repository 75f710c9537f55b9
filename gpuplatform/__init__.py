"""The frame of the house: settings, addresses, Celery's application, and the client.

It imports nothing: the client starts without Django. ``gpuplatform.common`` loads Celery.
"""

__version__ = "0.1.0"  # as in pyproject.toml
