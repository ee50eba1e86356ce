"""Judge: states and findings from a fleet, without I/O and without a clock."""
