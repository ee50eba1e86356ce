"""Programs in Ruby, run under a hypothesis about the environment."""
