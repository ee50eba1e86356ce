"""Programs in Lua, run under a hypothesis about the environment."""
