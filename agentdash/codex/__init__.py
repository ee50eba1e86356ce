"""What Codex leaves behind, read-only: its home, rollouts of every era."""
