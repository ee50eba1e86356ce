"""Judge: the layers of a sandbox compared; one finding per cause, with its remedy."""
