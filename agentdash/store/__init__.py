"""What agentdash remembers: journal and status file."""
