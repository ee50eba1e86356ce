"""The vocabulary: pure data, no I/O, no clock."""
