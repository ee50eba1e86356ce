"""agentdash: what each coding agent is doing, whether it needs you, and in which sandbox."""

__version__ = "0.2.0.dev0"
