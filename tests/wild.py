"""Read sessions of other people: `python -m tests.wild FOLDER` finds homes of Codex and Claude Code in it.

The installed program reads each home as its owner's would. Printed are a row for each home, what disagrees or
crashes, and all denials and verdicts with their lines, for reading by eye. Nothing in FOLDER is changed.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

AGENTDASH: Final = Path(sys.executable).with_name("agentdash")
_NAMED: Final = 5
"""Threads of a home that are asked for by their id, the largest first."""
_LIMIT_S: Final = 600.0
_PARTLY: Final = "only head and tail"
"""How a document states that a large session was not read whole."""
_AGENTS: Final = {"sessions": ("codex", "CODEX_HOME"), "projects": ("claude", "CLAUDE_CONFIG_DIR")}
"""Directories of a home, with the agent that it is of, and the variable that names it."""


@dataclass(slots=True)
class Home:
    """A home and what was read of it.

    Attributes:
        threads: what `check` says of each thread, by its id.
        faults: what must not be.
    """

    agent: str
    variable: str
    path: Path
    logs: Path
    threads: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    files: int = 0
    damaged: int = 0

    @property
    def row(self) -> str:
        """Return the row of the table."""
        states = Counter(each["state"] for each in self.threads.values())
        verdicts = Counter(each["verdict"] for each in self.threads.values())
        denials = sum(len(each["denials"]) for each in self.threads.values())
        counts = ", ".join(f"{number} {state}" for state, number in states.most_common())
        judged = f"{verdicts['match']} match, {verdicts['mismatch']} mismatch"
        return (
            f"{self.path.parent.name[:36]:36} {self.agent:6} {self.files:5} files {self.damaged:3} damaged "
            f"{len(self.threads):5} threads: {counts}; {judged}; {denials} denials; {len(self.faults)} faults"
        )


def find_homes(folder: Path) -> Iterator[Home]:
    """Yield the homes below `folder`."""
    for path, folders, _ in os.walk(folder):
        for name in sorted(set(folders) & _AGENTS.keys()):
            if any((logs := Path(path, name)).rglob("*.jsonl")):
                yield Home(*_AGENTS[name], Path(path), logs)
                folders.remove(name)


def read(home: Home) -> Home:
    """Let all readings of a home be made, and compare them."""
    files = [path for path in home.logs.rglob("*.jsonl") if path.is_file()]
    home.files = len(files)
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "none" / "sessions").mkdir(parents=True)
        env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": scratch, "XDG_STATE_HOME": scratch}
        env |= {"CODEX_HOME": f"{scratch}/none", "CLAUDE_CONFIG_DIR": scratch, home.variable: str(home.path)}
        checked = _run(home, env, "check", str(home.logs), "--json")
        home.threads = {each["id"]: each for each in checked.get("threads", ()) if each["id"]}
        told = {each["file"] for each in checked.get("threads", ()) if each["problem"] or each["notes"]}
        for path in files:
            if _is_damaged(path):
                home.damaged += 1
                if str(path) not in told:
                    home.faults.append(f"{path}: damaged lines that `check` does not tell of")
        quiet = ("--no-tmux", "--no-hosts", "--json")
        _compare(home, "status", _run(home, env, "status", "--all", *quiet))
        largest = sorted(home.threads.values(), key=lambda each: -Path(each["file"]).stat().st_size)[:_NAMED]
        for each in largest:
            _compare(home, "status ID", _run(home, env, "status", each["id"], *quiet), {each["id"]})
            _run(home, env, "replay", each["id"], "--export", f"{scratch}/{each['id']}.md")
    return home


def _run(home: Home, env: Mapping[str, str], *arguments: str) -> Mapping[str, Any]:
    """Run the installed program; return its document, or nothing, and a fault, where it fails."""
    command = (str(AGENTDASH), *arguments)
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        home.faults.append(f"{arguments}: takes more than {_LIMIT_S:.0f} s")
        return {}
    if "Traceback" in done.stderr or done.returncode not in (0, 1, 2):
        home.faults.append(f"{arguments}: ends with {done.returncode}\n{done.stderr[-2000:]}")
    elif "--export" in arguments and done.returncode:
        home.faults.append(f"{arguments}: {done.stderr.strip()}")
    if "--json" not in arguments or not done.stdout:
        return {}
    document: Mapping[str, Any] = json.loads(done.stdout)
    return document


def _compare(home: Home, name: str, document: Mapping[str, Any], wanted: set[str] | None = None) -> None:
    """Hold a status document against what `check` says of the same threads."""
    seen = {each["id"]: each for each in document.get("workers", ())}
    for thread in wanted or seen.keys() & home.threads.keys():
        if thread not in seen:
            home.faults.append(f"{name}: {thread} is not in it")
            continue
        checked, worker = home.threads[thread], seen[thread]
        pairs = {
            "state": (checked["state"], worker["state"]),
            "verdict": (checked["verdict"], worker["sandbox"]["verdict"]),
            "denials": (_targets(checked["denials"]), _targets(worker["sandbox"]["denials"])),
        }
        if any(_PARTLY in each for each in worker["sandbox"]["not_known"]):
            del pairs["denials"], pairs["verdict"]  # it says so itself
        home.faults += [
            f"{name}: {thread} {what}: check {one}, {name} {other}\n    {checked['file']}"
            for what, (one, other) in pairs.items()
            if one != other
        ]


def _targets(denials: list[Mapping[str, Any]]) -> list[str]:
    return sorted({f"{each['operation']} {each['target']}" for each in denials})


def _is_damaged(path: Path) -> bool:
    """Return whether a line, but for a torn last one, is no JSON object."""
    *lines, _ = path.read_bytes().split(b"\n")
    try:
        return not all(isinstance(json.loads(line), dict) for line in lines if line.strip())
    except ValueError:
        return True


def print_for_eyes(home: Home) -> None:
    """Print what was denied and judged, with file and line."""
    for each in home.threads.values():
        for denial in each["denials"]:
            where = f"{each['file']}:{denial.get('line')}"
            print(f"{denial['operation']} {denial['target']} ({denial['certainty']})\n    {where}")
        if each["verdict"] != "unverified" or each["findings"]:
            kinds = ", ".join(finding["kind"] for finding in each["findings"]) or "no finding"
            print(f"{each['verdict']}: {kinds}\n    {each['file']}")


def main() -> int:
    """Print the table; return 1 where something crashed or disagrees."""
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        print("usage: python -m tests.wild FOLDER", file=sys.stderr)
        return 2
    with ThreadPoolExecutor(2) as pool:
        homes = list(pool.map(read, find_homes(Path(sys.argv[1]).resolve())))
    for home in homes:
        print_for_eyes(home)
    for home in homes:
        for fault in home.faults:
            print(f"FAULT {fault}")
    for home in homes:
        print(home.row)
    return 1 if any(home.faults for home in homes) else 0


if __name__ == "__main__":
    raise SystemExit(main())
