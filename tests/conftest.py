"""What holds for all tests."""

from __future__ import annotations

import os

# the Claude Code of the machine is none of the tests' business: its sessions would be among the workers
os.environ["CLAUDE_CONFIG_DIR"] = "/dev/null/claude"  # cannot be created, not even by root

# a usual umask of systems with a group for each user would make files that other users may write to
os.umask(0o022)
