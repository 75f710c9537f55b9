"""``gpuctl``: the platform from a terminal. It knows REST and nothing else of the platform."""
