"""Cost and usage from other systems into tables, a day at a time.

``reaching`` opens a source, ``loading`` asks it for a day, ``judging`` says what may become of the
answer, ``storing`` writes it, ``quarantine`` is where a person decides, ``due`` says what to
load tonight.
"""
