"""`agentdash sessions`: which sessions a Codex home holds, newest first."""
