"""Judge: what state a worker is in, on what evidence, and since when."""
