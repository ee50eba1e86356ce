"""The past sessions of a Codex home: listed, read, grouped, filtered, searched."""
