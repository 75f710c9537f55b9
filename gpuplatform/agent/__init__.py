"""The reference agent: runs members of gangs as local processes of one machine.

A client of the platform's REST and nothing else: it knows no table and no framework.
"""
