"""Programs in PHP, run under a hypothesis about the environment."""
