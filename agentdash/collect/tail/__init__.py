"""Follow growing log files."""
