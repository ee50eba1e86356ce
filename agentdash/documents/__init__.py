"""The public documents: their structs, written here and read from other hosts."""
