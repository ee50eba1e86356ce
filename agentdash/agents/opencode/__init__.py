"""OpenCode: its configuration."""
