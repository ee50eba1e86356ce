"""What holds for all tests."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# time limits of single examples fail on a busy machine
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# the other CLIs of the machine are none of the tests' business: its sessions would be among the workers
os.environ["CLAUDE_CONFIG_DIR"] = "/dev/null/claude"  # cannot be created, not even by root
for _variable in ("GEMINI_CLI_HOME", "QWEN_HOME", "COPILOT_HOME"):
    os.environ[_variable] = "/dev/null/other"

# a usual umask of systems with a group for each user would make files that other users may write to
os.umask(0o022)


@pytest.fixture
def program_folder() -> Iterator[Path]:
    """Yield a directory for programs that agentdash starts: it starts none below one that everyone may write,
    as pytest's is."""
    cache = Path.home() / ".cache" / "agentdash-tests"
    cache.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="programs_", dir=cache))
    yield folder
    shutil.rmtree(folder)
