"""Workers in containers of podman. Run by `AGENTDASH_PODMAN=1 tests/run tests/live/test_podman.py`.

Not by default: it needs podman and runc, and a machine that lets them make containers.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agentdash.config import HostSettings
from agentdash.model.states import State
from agentdash.model.worker import Worker
from tests.live.conftest import OpenLab
from tests.live.patience import until
from tests.live.ssh_hosts import PODMAN_RUN, Podman, agentdash_for, make_root
from tests.live.test_hosts import as_document, essence, watching, workers_of
from tests.live.watched import is_judged, thread_in
from tests.live.workers import WorkerLab, program
from tests.live.workers import watching as watching_workers


def is_observed(worker: Worker) -> bool:
    return worker.sandbox.got.seccomp is not None and is_judged(worker)


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
            full = await watched.until(lambda w: "[full]" in w.name and is_observed(w))
            work = await watched.until(lambda w: "[work]" in w.name and is_observed(w))
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


_CLIENT = """#!/bin/bash
[ "$1" = run ] || exec {podman} "$@"
shift
while [ $# -gt 0 ]; do
    case "$1" in
        --init) ;;  # needs catatonit
        --add-host) shift ;;  # of no use in the network of the host
        *) arguments+=("$1") ;;
    esac
    shift
done
exec {podman} {run} "${{arguments[@]}}"
"""
"""A program `podman` that makes containers on these machines, whatever its arguments are."""


def _podman(*arguments: str, given: bytes = b"") -> str:
    """Run podman, and return its output."""
    done = subprocess.run(
        [shutil.which("podman") or "podman", *arguments], input=given, capture_output=True, check=True
    )
    return done.stdout.decode()


@pytest.fixture
def image(tmp_path: Path, program_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the name of an image with Gemini CLI, which the `podman` that is first on PATH can run."""
    name = f"localhost/agentdash-test-{os.getpid()}:1"
    gemini = program("gemini")
    make_root(tmp_path / "root")
    tree = subprocess.run(["tar", "-C", tmp_path / "root", "-c", "."], capture_output=True, check=True)
    _podman("import", "-", name, given=tree.stdout)
    mounts = [f"--volume={place}:{place}:ro" for place in ("/usr", "/etc", gemini.parents[2])]
    run = shlex.join([*PODMAN_RUN, *mounts, f"--env=PATH={gemini.parent}:/usr/sbin:/usr/bin"])
    client = program_folder / "podman"
    client.write_text(_CLIENT.format(podman=shutil.which("podman"), run=run), "utf-8")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{client.parent}:{os.environ['PATH']}")
    yield name
    _podman("rmi", "--force", name)  # with the containers that run it


async def test_gemini_in_a_container_of_its_own(image: str) -> None:
    """What is observed of the worker is its process in the container, as the kernel shows it there."""
    lab = WorkerLab({"act": [{"run": "until [ -e go ]; do echo .; sleep 1; done"}, {"say": "It has ended."}]})
    with closing(lab):
        lab.configure("gemini")
        async with watching_workers(lab) as watched:
            asked = {"GEMINI_SANDBOX": "podman", "GEMINI_SANDBOX_IMAGE": image}
            pane = await lab.start("gemini", "--yolo", env=asked)
            await pane.submit("[[act]] act")
            found = await watched.until(
                lambda w: thread_in(State.RUNNING)(w) and w.sandbox.verdict == "match"
            )
            name = _podman("ps", f"--filter=ancestor={image}", "--format={{.Names}}").strip()
            inside = _podman("exec", name, "cat", "/proc/1/status")
            assert f"Seccomp:\t{found.sandbox.got.seccomp}\n" in inside
            assert (found.sandbox.applied, found.sandbox.got.sandboxed) == ("Gemini CLI by podman", True)
            assert found.pane is not None
            assert (found.pane.key.id, found.sandbox.unread) == (pane.id, ())
            (lab.workspace / "go").touch()
            done = await watched.until(thread_in(State.COMPLETED))
            assert (done.id, done.sandbox.verdict) == (found.id, "match")
