"""Read processes on Linux and macOS."""
