"""The addresses of the house; the only file that imports all rooms."""

from django.urls import URLPattern, URLResolver

urlpatterns: list[URLPattern | URLResolver] = []
