"""The draft bill's arithmetic, as the pages use it today."""
