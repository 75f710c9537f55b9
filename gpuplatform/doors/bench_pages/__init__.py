"""``manage.py bench pages``: how long the server takes for each page of a large platform."""
