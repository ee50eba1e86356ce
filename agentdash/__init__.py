"""agentdash: what every coding agent is doing, why, and in which sandbox."""

__version__ = "0.1.0"
