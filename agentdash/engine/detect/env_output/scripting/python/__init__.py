"""Programs in Python, run under a hypothesis about the environment."""
