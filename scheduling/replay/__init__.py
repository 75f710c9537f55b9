"""Replay: a trace of work run through the real engine in virtual time. Pure.

``reading`` and ``site`` read files, ``policies`` names what may be compared, ``player`` plays,
``tape`` holds what happened, ``figures`` says how long work waited and how much was used.
"""
