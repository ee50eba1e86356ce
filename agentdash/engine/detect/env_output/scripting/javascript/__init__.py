"""Programs in JavaScript, as Node runs it, run under a hypothesis about the environment."""
