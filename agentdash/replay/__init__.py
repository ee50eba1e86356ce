"""Past sessions: the same events as live, from files, on a virtual clock."""
