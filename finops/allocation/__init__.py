"""Facts of a period in, bill out: pure, exact, standard library only."""
