"""The live sources, one class a file: each turns what it reads into events."""
