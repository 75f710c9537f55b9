"""The frame of the house: settings, addresses, Celery's application, and the client.

It imports nothing: the client starts without Django. ``gpuplatform.common`` loads Celery.
"""
