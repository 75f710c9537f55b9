"""From an open month to a closed one: steps, freezing, numbers, what comes late."""
