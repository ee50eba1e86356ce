"""What differs between Gemini CLI and its fork Qwen Code: names of files and variables."""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Mapping
from typing import Final

import msgspec

_IS_MACOS: Final = sys.platform == "darwin"


class Family(msgspec.Struct, frozen=True):
    """One of the two CLIs."""

    name: str
    directory: str
    """Its directory, in the home directory and in a workspace."""
    home_variable: str
    """Moves that directory: its parent for Gemini CLI, the directory itself for Qwen Code."""
    is_home_parent: bool
    sandbox_variable: str
    """Outranks the settings, and `--sandbox` unless that `does_argument_outrank`."""
    does_argument_outrank: bool
    """Whether `--sandbox` sets that variable to `true`, whatever it was."""
    system_variable: str
    """Names the file of the system's settings."""
    system_file: str
    is_trust_required: bool
    """Whether a workspace's settings count only in a trusted folder, where nothing is set
    (`security.folderTrust.enabled`)."""

    def home(self, env: Mapping[str, str], cwd: str) -> str | None:
        """Return its directory of settings and sessions; None where that is not known."""
        if named := env.get(self.home_variable):
            return posixpath.join(cwd, named, self.directory if self.is_home_parent else "")
        home = env.get("HOME")
        return posixpath.join(home, self.directory) if home else None


GEMINI: Final = Family(
    name="Gemini CLI",
    directory=".gemini",
    home_variable="GEMINI_CLI_HOME",
    is_home_parent=True,
    sandbox_variable="GEMINI_SANDBOX",
    does_argument_outrank=True,
    system_variable="GEMINI_CLI_SYSTEM_SETTINGS_PATH",
    system_file=(
        "/Library/Application Support/GeminiCli/settings.json"
        if _IS_MACOS
        else "/etc/gemini-cli/settings.json"
    ),
    is_trust_required=True,
)
"""0.61.0."""
QWEN: Final = Family(
    name="Qwen Code",
    directory=".qwen",
    home_variable="QWEN_HOME",
    is_home_parent=False,
    sandbox_variable="QWEN_SANDBOX",
    does_argument_outrank=False,
    system_variable="QWEN_CODE_SYSTEM_SETTINGS_PATH",
    system_file=(
        "/Library/Application Support/QwenCode/settings.json" if _IS_MACOS else "/etc/qwen-code/settings.json"
    ),
    is_trust_required=False,
)
"""0.15.10."""
