"""Webhooks: events of the platform, told to addresses of others, signed and until they are taken.

``events`` reads what happened from the rows that say so, ``outbox`` writes a delivery for each
webhook that wants it, ``sending`` sends what is due, ``wire`` is the call itself and the guard
before it, ``services`` writes webhooks and ``rules`` says what they may be.
"""
