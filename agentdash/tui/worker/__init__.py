"""One worker: panel tabs and full screen."""
