"""Programs in awk, run under a hypothesis about the environment."""
