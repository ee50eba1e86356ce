"""The replay: its app and its transport bar (position, speed, marks)."""
