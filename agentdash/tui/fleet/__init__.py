"""The fleet: rows, header, filter."""
