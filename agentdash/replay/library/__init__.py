"""The library of past sessions: families, query, search."""
