"""`agentdash remote check`: what a host lacks to be watched, as the document `agentdash.remote-check/1`."""

from __future__ import annotations

from typing import Literal

import msgspec

from agentdash.report.doctor import DoctorCheck


class RemoteCheckReport(msgspec.Struct):
    """The document of `agentdash remote check --json`."""

    schema: Literal["agentdash.remote-check/1"]
    """Name and version of the document."""
    host: str
    """As it was given."""
    checks: list[DoctorCheck]
    """The connection, Python and agentdash there, the clock, and what its own `doctor` warns of."""

    @property
    def exit_code(self) -> int:
        """0: it can be watched. 1: it cannot."""
        return int(any(check.level == "fail" for check in self.checks))
