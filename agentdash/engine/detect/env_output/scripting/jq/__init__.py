"""Programs in jq, run under a hypothesis about the environment."""
