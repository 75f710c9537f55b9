"""Template tags that several rooms share."""
