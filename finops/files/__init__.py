"""Bills as files: spreadsheets, FOCUS, a manifest with hashes, an archive, PDF."""
