"""A library for tests: families, forks, every kind of ending, bad files, long and wide names."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from agentdash.agents.codex.home import CodexHome
from agentdash.model.findings import Verdict
from agentdash.model.states import State
from agentdash.model.tokens import ModelUsage, TokenUsage
from agentdash.replay.library.entry import Entry
from agentdash.tui.library.app import LibraryApp
from agentdash.tui.library.list import LibraryModel
from agentdash.tui.options import Options

from . import sample_fleet

HOME = CodexHome(Path("/home/dev/.codex"))
HOUR = 3_600.0


def entry(
    number: int,
    title: str,
    state: State | None = State.COMPLETED,
    verdict: Verdict | None = "match",
    **fields: object,
) -> Entry:
    thread = f"01a1fa8b-{number:04x}-7501-a214-dc60155cd481"
    base = Entry(
        thread,
        HOME.sessions / "2026/03/11" / f"rollout-2026-03-11T10-{number:02d}-00-{thread}.jsonl",
        sample_fleet.NOW - number * HOUR,
        is_read=True,
        size=412_000,
        title=title,
        cwd="/home/dev/shop/services/checkout-api",
        version="0.169.0",
        model="gpt-5-codex",
        took=74.0 * number + 3.2,
        state=state,
        verdict=verdict,
        tokens=18_400 * number,
        by_model=(ModelUsage(model="gpt-5-codex", usage=TokenUsage(input=18_400 * number)),),
    )
    return replace(base, **fields)


PARENT = entry(3, "Ship the checkout", took=2_400.0)
LIMIT, FAMILY = "usage_limit_exceeded: try again at 21:00", {"parent": PARENT.id}
WIDE = "データベースの移行を書いてください 🚀 [bold]not markup[/bold]"
PAST = (
    entry(1, "Fix the flaky login test", why="finished"),
    entry(2, "Upgrade the payment client", State.FAILED_PROVIDER, "unverified", why=LIMIT, model="o4"),
    entry(4, "Lagrange", verdict="mismatch", findings=("stale-network-flag",), why="finished", **FAMILY),
    entry(5, "Pasteur", State.EXITED, "mismatch", findings=("network-cut",), **FAMILY),
    PARENT,
    entry(6, "Ship the checkout, but with the new client", fork=True, **FAMILY),
    entry(7, "touch /etc/motd", State.BLOCKED_SANDBOX, findings=("denied-filesystem",)),
    entry(8, WIDE, State.INTERRUPTED, "unverified", cwd="/home/dev/移行"),
    entry(9, "", None, None, problem="no rollout: it has no header"),
    entry(10, "guardian", None, None, helper=True),
    entry(11, "Read the big log", size=612_000_000, took=90_000.0),
    *(entry(13 + n, f"Nightly run {n}", took=400.0, version=f"0.{150 - n}.0") for n in range(60)),
)


class StaticLibrary:
    """A library without files: every entry is read at once."""

    home = HOME
    problem: str | None = None
    unread: tuple[str, ...] = ()

    def __init__(self, past: Sequence[Entry] = PAST, problem: str | None = None) -> None:
        self.past, self.problem = past, problem

    def entries(self) -> Iterator[Entry]:
        return (Entry(e.id, e.path, e.begun) for e in self.past)

    def refresh(self, entry: Entry) -> Entry:
        return entry

    def fill(self, entries: Sequence[Entry]) -> Iterator[Entry]:
        del entries
        yield from self.past


def library(shelves: object = None, model: LibraryModel | None = None, **options: object) -> LibraryApp:
    return LibraryApp(
        shelves or StaticLibrary(),
        model or LibraryModel(),
        sample_fleet.frozen(),
        Options(**options),
        lambda target, file: f"Written {target} to {file}",
    )
