"""Workers of other hosts and of containers: `agentdash status --watch`, run there."""
