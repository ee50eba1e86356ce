"""What was asked of Codex's sandbox: its arguments and configuration files, and which of them decides."""
