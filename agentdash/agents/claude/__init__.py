"""Claude Code: session files."""
