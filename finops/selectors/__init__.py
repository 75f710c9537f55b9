"""The only readers of money for pages, files and REST."""
