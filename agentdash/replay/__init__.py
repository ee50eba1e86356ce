"""Past sessions: the same events as live, read from files and played on a virtual clock."""
