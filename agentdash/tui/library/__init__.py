"""The library of past sessions."""
