"""Observations of the sandbox that commands had, and of what ran outside it."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from agentdash.model.evidence import EvidenceSource
from agentdash.model.policy import Policy
from agentdash.model.process import ProcessKey

NETWORK_FLAG: Final = "CODEX_SANDBOX_NETWORK_DISABLED"
"""`1` where the policy turns the network off (all versions, also where no sandbox could be built)."""
SANDBOX_FLAG: Final = "CODEX_SANDBOX"
"""`seatbelt` in the sandbox of macOS."""
RUNTIME_FLAG: Final = "SANDBOX_RUNTIME"
"""`1` for everything in the sandbox of Anthropic's sandbox runtime (`srt`, Claude Code)."""
INHERITED: Final = "SANDBOX"
"""Set by Gemini CLI and Qwen Code inside their sandboxes: `sandbox-exec`, or a container's name. Where it
is inherited from elsewhere, they start none."""


UNSET = "unset"
"""The value of a variable that was looked for and is not set. (None: not looked for.)"""


Granted = Literal["outside", "more", "rule"]
"""What a command was allowed beyond the policy: to run outside the sandbox, or inside with additional
permissions. `rule`: a rule may have let it run outside; which rules there were then is not known."""


Effect = Literal["refused", "reached"]
"""`refused`: its sandbox alone can have refused something that the policy forbids. `reached`: a host of the
network answered."""


class Applied(msgspec.Struct, frozen=True, omit_defaults=True):
    """What Codex put between itself and a command."""

    by: str
    """`codex-linux-sandbox`, `bwrap`, `sandbox-exec`; `nothing` where the command is Codex's own child."""
    policy: Policy | None = None
    """The policy in the launcher's arguments, or None if it cannot be read."""


class SandboxObservation(msgspec.Struct, frozen=True, omit_defaults=True):
    """What commands of a thread were observed to have, under one policy. Equal observations are one,
    counted."""

    source: EvidenceSource
    """`output`: a command printed it. `environment`: read from a live process."""
    policy: int
    """Index into the thread's policies; -1 before the first."""
    network_flag: str | None = None
    """`CODEX_SANDBOX_NETWORK_DISABLED`: its value, `unset`, or None if it was not read."""
    sandbox_flag: str | None = None
    """`CODEX_SANDBOX`, likewise."""
    granted: Granted | None = None
    rule: str = ""
    """The rule that may have let it run outside: `FILE:LINE`."""
    by_user: bool = False
    called: bool = True
    """Whether the call that started it is known: without one it may be the user's own command, which no
    sandbox holds."""
    seccomp: int | None = None
    no_new_privs: bool | None = None
    own_network: bool | None = None
    """Whether the process is in another network namespace than its Codex; None: not known."""
    mediated: bool = False
    """Whether it was given Codex's proxy (`CODEX_NETWORK_PROXY_ACTIVE`), which answers for the network in its
    namespace."""
    sandboxed: bool | None = None
    """Whether the kernel restricts it more than its Codex (seccomp, no_new_privs, namespaces); None: not
    known."""
    recorded: bool | None = None
    """Whether the CLI's own record states that it ran the command in its sandbox (Claude Code, `sandboxed`;
    Codex, `failed in sandbox`); None: an observation of the command itself."""
    effect: Effect | None = None
    """What became of its access to something that the policy decides; None: not observed."""
    approved: bool = False
    """Whether a person allowed it to leave the sandbox."""
    nested: bool = False
    """Whether its Codex itself runs inside a sandbox that a launcher above it built."""
    applied: Applied | None = None
    """What stands above it; None: not seen."""
    unwritable: tuple[str, ...] = ()
    """Roots that the policy lets be written and the command's mounts do not."""
    exposed: tuple[str, ...] = ()
    """Paths that the policy keeps from being written and the command's mounts do not."""
    lost: tuple[str, ...] = ()
    """Such paths in a filesystem that its sandbox has for itself: what is written there is lost with it."""
    first: float = 0.0
    last: float = 0.0
    count: int = 1
    calls: tuple[str, ...] = ()
    """The newest few call ids it was seen at."""
    pids: tuple[int, ...] = ()
    """The newest few processes it was seen in."""
    quote: str = ""
    """The words or values it is derived from, the first time."""
    provisional: bool = False
    """Whether lines of its thread's log that are still to be read may state another call or policy for it."""


class ProvisionalObservation(msgspec.Struct, frozen=True):
    """An observation of a process that is made again when more of its thread's log has been read."""

    thread: str
    observation: SandboxObservation
    lines: int
    """Of the log, read when it was made."""
    below: ProcessKey | None = None
    """The Codex above the process, where it is not known to run the thread: the observation counts only once
    it is. None: it is."""


class Escape(msgspec.Struct, frozen=True):
    """A sandboxed command that had a tmux server outside the sandbox run something."""

    at: float
    call: str
    pane: str
    """`%4`"""
    pid: int | None
    """The process that runs outside, where a pane was opened for it."""
    quote: str
