"""What was asked of a sandbox, and where: arguments, environment, configuration files, settings of a thread.

The types are the same for all worker CLIs; their adapters find the values (`agents/codex/config/`).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from agentdash.model.policy import Policy


class RequestLayer(StrEnum):
    """Where a value can be asked for. The values are those of the documents."""

    ARGV = "argv"
    """The command line of the CLI."""
    ENVIRONMENT = "environment"
    """A variable in the environment that the CLI was started with."""
    THREAD = "thread setting"
    """A change in the running CLI: `/permissions`, a permission mode."""
    ROLE = "role"
    """The file of a sub-agent's role."""
    PROFILE = "profile"
    """A profile that was selected by name."""
    PROJECT = "project config"
    """A configuration file of the workspace."""
    USER = "user config"
    """The configuration file in the home directory."""
    SYSTEM = "system config"
    """A configuration file for all users, which users may override."""
    MANAGED = "managed"
    """Settings of an administrator, which users may not override."""
    PARENT = "parent"
    """The thread that spawned this one."""
    DEFAULT = "default"
    """Nothing is set: the default of this version of the CLI."""


class RequestField(StrEnum):
    """A part of a policy that can be asked for by itself."""

    FILESYSTEM = "filesystem"
    NETWORK = "network"
    WRITABLE_ROOTS = "writable_roots"
    APPROVAL = "approval"
    REVIEWER = "reviewer"
    PROFILE = "profile"


class RequestOrigin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where one part of a requested policy was set."""

    field: RequestField
    layer: RequestLayer
    text: str
    """The words that set it, as written: `-s read-only`, `sandbox_mode = "read-only"`."""
    file: str | None = None
    """Absolute path; None for arguments, variables and defaults."""
    line: int | None = None
    """Line of the file, counted from 1."""

    @property
    def where(self) -> str:
        """Return the place in a few characters: `argv`, `/home/me/.codex/config.toml:3`."""
        if self.file is None:
            return self.layer.value
        return f"{self.file}:{self.line}" if self.line is not None else self.file

    def __str__(self) -> str:
        if self.layer is RequestLayer.PARENT:
            return self.text
        return f"{self.where}: {self.text}" if self.text else self.where


class Requested(msgspec.Struct, frozen=True, omit_defaults=True):
    """The policy that was asked for. What nothing asked for is `unknown`, None or empty in it."""

    policy: Policy = Policy()
    origins: tuple[RequestOrigin, ...] = ()
    """One for each part that was asked for; parts without an origin are not compared."""
    since: float | None = None
    """When it was asked for: the start of the process, or the change in it (unix seconds)."""
    read_at: float | None = None
    """When the configuration files were read, where that was after `since`: they are the configuration as of
    then; None: at the start of the process."""

    files_written: float | None = None
    """When the newest of the configuration files was written (unix seconds), or None."""
    changed_files: tuple[str, ...] = ()
    """Configuration files that were written after `since`: what they set then is not known. (Codex writes its
    own file as it starts.)"""
    given: Policy | None = None
    """What the CLI makes of it by the rules of its version, managed settings included; None: not known."""
    given_origins: tuple[RequestOrigin, ...] = ()
    """Where the parts of `given` were set."""
    excluded: tuple[str, ...] = ()
    """Commands that are to run without the sandbox (Claude Code, `excludedCommands`)."""
    resumes: bool = False
    """Whether it was asked of a thread that existed already."""
    are_arguments_known: bool = True
    """Whether the arguments of the process were read: false of one that had ended before."""
    rules_of: str | None = None
    """The measured version whose rules were applied, if that of the CLI was not measured."""
    dropped_by: RequestOrigin | None = None
    """What keeps the CLI from starting the sandbox that is asked for, without a word: an inherited `SANDBOX`
    (Gemini CLI, Qwen Code)."""
    is_fixed: bool = True
    """Whether the policy cannot be changed in the running CLI: false of one with a screen, where the user may
    choose another one before any file shows it."""

    @property
    def is_config_as_of_now(self) -> bool:
        """Whether it is only what the files ask for now, of a process whose arguments are not known."""
        return self.read_at is not None and not self.are_arguments_known

    def origin(self, field: RequestField) -> RequestOrigin | None:
        """Return where a part was set, or None."""
        return next((origin for origin in self.origins if origin.field is field), None)

    def given_origin(self, field: RequestField) -> RequestOrigin | None:
        """Return where the part of `given` was set."""
        return next((origin for origin in self.given_origins if origin.field is field), None)
