"""The library of past sessions: list, filter, full-text search."""
