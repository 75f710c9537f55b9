"""The only readers of this room's pages; each costs a fixed number of queries."""
