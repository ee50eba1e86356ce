"""Checks of one observation against the policy that was in force when it was made.

| policy's network | `CODEX_SANDBOX_NETWORK_DISABLED` of a command | finding |
|---|---|---|
| off | `1` | none; `escalated-flag-left` where an allowed escalation really runs on the host |
| off | unset | `missing-network-flag`; `network-open` where the kernel shows the host's (not for `!cmd`) |
| on | unset | none |
| on | `1` | `stale-network-flag`; `network-cut` where the kernel shows a network namespace of its own |

Codex sets `CODEX_SANDBOX` on macOS alone, to `seatbelt`, and only for commands that it sandboxes: anywhere
else its presence is a `foreign-sandbox-flag`. The flags are labels: kernel facts, where known, outrank them.

Files: what the launcher's arguments and the command's mounts make writable, against what the policy makes
writable.
"""

from __future__ import annotations

from typing import Final

from agentdash.engine.judge.findings import command_sandbox, filesystem_checks, network_checks, sandbox_checks
from agentdash.engine.judge.findings.comparison import Comparison
from agentdash.model.findings import Finding

_CHECKS: Final = (
    network_checks.network_cut,
    network_checks.network_open,
    network_checks.stale_network_flag,
    network_checks.missing_network_flag,
    filesystem_checks.filesystem_narrower,
    filesystem_checks.filesystem_wider,
    command_sandbox.sandbox_off_for_command,
    sandbox_checks.foreign_sandbox_flag,
    sandbox_checks.escalated_not_host,
    sandbox_checks.escalated_flag_left,
    sandbox_checks.nested_sandbox,
)


def check_observation(seen: Comparison) -> list[Finding]:
    """Return the findings of one observation, in the order of the checks."""
    return [finding for check in _CHECKS if (finding := check(seen)) is not None]
