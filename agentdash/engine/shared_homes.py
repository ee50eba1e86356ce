"""Workers that are seen twice: here, and by the agentdash of a container that shares its Codex home.

Both read the same session file. That it is one worker, and no copy that was continued elsewhere, is shown by
a process of it: Linux gives the number of a process in each of its pid namespaces (`NSpid`), and the document
of the container has the number there.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentdash.model.process import Process, ProcessKey
from agentdash.model.worker import Link, Worker


class SharedHomes:
    """The workers of hosts that are known to be workers of this machine."""

    def __init__(self) -> None:
        self._links: dict[str, Link] = {}

    def link(self, there: Worker, here: Worker, processes: Mapping[ProcessKey, Process]) -> Link | None:
        """Return the link between the same worker there and here; None where nothing shows that.

        It remains when the process has ended that showed it.

        Args:
            there: the row of a host.
            here: the worker of this machine with the same thread.
            processes: those of this machine.
        """
        if there.id not in self._links and there.pids and here.pids:
            inner = {
                number: process.pid
                for process in processes.values()
                if process.pid in here.pids and process.kernel is not None
                for number in process.kernel.ns_pids[1:]
            }
            for number in there.pids:
                if number in inner:
                    by = f"process {inner[number]} has the number {number} there"
                    self._links[there.id] = Link(f"host {there.host}", by)
        return self._links.get(there.id)
