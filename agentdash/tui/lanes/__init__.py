"""The lanes: the states of all workers on one time axis."""
