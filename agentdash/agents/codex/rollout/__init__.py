"""Read rollout files of all Codex versions."""
