"""Codex: home, rollouts, launcher arguments, status feed, log database."""
