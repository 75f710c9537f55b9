"""Requests that are answered later: done by a worker, looked at, cancelled."""
