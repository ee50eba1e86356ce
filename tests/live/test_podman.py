"""Workers in a container of podman. Run by `AGENTDASH_PODMAN=1 tests/run tests/live/test_podman.py`.

Not by default: it needs podman and runc, and a machine that lets them make containers.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from agentdash.config import HostSettings
from agentdash.model.states import State
from tests.live.conftest import OpenLab
from tests.live.patience import until
from tests.live.ssh_hosts import Podman, agentdash_for
from tests.live.test_hosts import as_document, essence, watching, workers_of


async def test_workers_in_a_container_of_podman(codex: OpenLab, tmp_path: Path) -> None:
    """What is stated of them is what an agentdash inside states; then it is paused, continued and removed."""
    held = {"yield_ms": 600_000}
    lab = codex(
        {
            "full": [{"run": "env; sleep 600", **held}, {"say": "done"}],
            "work": [{"run": "env | grep ^CODEX; sleep 600", **held}, {"say": "done"}],
        }
    )
    (tmp_path / "bin").mkdir()
    program = agentdash_for(tmp_path / "bin", lab.home)
    name = f"agentdash-test-{os.getpid()}"
    box = Podman(name, tmp_path, readable=[lab.binary.parents[2]], shared=[lab.root, tmp_path / "bin"])
    workers = []
    try:
        for mode, prompt in (("danger-full-access", "[[full]] go"), ("workspace-write", "[[work]] go")):
            command = [str(lab.binary), "exec", "-s", mode, "--skip-git-repo-check", "-C", str(lab.workspace)]
            workers.append(box.start([*command, prompt], CODEX_HOME=str(lab.home), HOME=str(lab.user)))
        settings = HostSettings(container=f"podman:{name}", command=str(program))
        async with watching(tmp_path, {"box": settings}) as watched:
            full = await watched.until(lambda w: "[full]" in w.name and w.sandbox.got.seccomp is not None)
            work = await watched.until(lambda w: "[work]" in w.name and w.sandbox.got.seccomp is not None)
            assert (full.host, full.sandbox.verdict, full.sandbox.got.no_new_privs) == ("box", "match", False)
            assert (work.host, work.sandbox.verdict, work.sandbox.got.no_new_privs) == ("box", "match", True)
            inside = json.loads(box.run(str(program), "status", "--json"))["workers"]

            def is_as_inside() -> bool:
                shown = [essence(as_document(w)) for w in workers_of(watched.snapshot, "box")]
                return shown == [essence(each) for each in inside]

            await until(is_as_inside, f"the workers as an agentdash inside states them: {inside}")

            box.pause()
            lost = await watched.until(lambda w: w.id == full.id and w.state is State.UNREACHABLE)
            assert "nothing received" in lost.assessment.why
            box.unpause()
            await watched.until(lambda w: w.id == full.id and w.state is State.RUNNING)
            box.remove()
            gone = "no such container"
            await watched.until(lambda w: w.id == full.id and gone in w.assessment.why)
    finally:
        box.remove()
        for worker in workers:
            worker.wait(timeout=60)
