"""States of real CLIs: accuracy two seconds after a cause, latency of prompts, and changes without a cause.

Ten minutes of sessions of Codex and of OpenCode with scripted models; npm installs both, see tests/live.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from agentdash.model.states import State
from tests.bench.figures import spread
from tests.live import walks
from tests.live.codex import Lab, Pane, install
from tests.live.scripted_server import Script
from tests.live.walks import Step, Taken, walk
from tests.live.watched import watching

_SECONDS = 600
_STAY = 2.0
_PROMPTS = 20
Open = Callable[[Lab], Awaitable[Pane]]


def measure(home: Path) -> None:
    """Measure all three."""
    del home
    asyncio.run(prompts("Codex, by its feed", walks.open_codex, walks.MENU, "y"))
    asyncio.run(prompts("OpenCode, by its screen", walks.open_opencode, "Permission required", "Enter"))
    asyncio.run(sessions())


async def prompts(name: str, start: Open, menu: str, key: str) -> None:
    """Measure the latency from a prompt on the screen to the snapshot that has it."""
    lab = Lab(install(), {"ask": [{"run": "true", "escalate": "May I?"}, {"say": "all done"}] * _PROMPTS})
    taken: list[float] = []
    try:
        async with watching(lab) as seen:
            pane = await start(lab)
            for _ in range(_PROMPTS):
                known = asyncio.create_task(seen.at(lambda w: w.state is State.WAITING_APPROVAL))
                pane.submit("[[ask]] go")
                await pane.shows(menu)
                shown = time.time()
                _, at = await known
                taken.append((at - shown) * 1000)
                await pane.answer(menu, key)
                await seen.until(lambda w: w.state is State.COMPLETED)
    finally:
        lab.close()
    print(f"prompt -> snapshot, {name}: {spread(taken)} (below 0: before it was on the screen)", flush=True)


async def sessions() -> None:
    """Walk through all states repeatedly, with both CLIs in turns, `_SECONDS` each."""
    taken: list[Taken] = []
    rounds: list[tuple[Open, Script, tuple[Step, ...]]] = [
        (walks.open_codex, walks.CODEX, (*walks.CODEX_TUI, walks.GIVEN_UP)),
        (walks.open_opencode, walks.OPENCODE, (*walks.OPENCODE_TUI, walks.KILLED)),
    ]
    spent = [0.0] * len(rounds)
    number = 0
    while min(spent) < _SECONDS:
        turn = spent.index(min(spent))
        start, script, steps = rounds[turn]
        number += 1
        lab, begun = Lab(install(), script, walks.CODEX_CONFIG), time.monotonic()
        try:
            async with watching(lab) as seen:
                taken += await walk(seen, lab, await start(lab), steps, _STAY)
        except AssertionError as missed:
            print(f"not reached: {missed}", file=sys.stderr, flush=True)
        finally:
            lab.close()
        spent[turn] += time.monotonic() - begun
    strays = [(t.step.name, t.passed) for t in taken if t.stray]
    strays_in_all = sum(len(t.stray) for t in taken)
    amount = f"{number} sessions, {_SECONDS:.0f} s of each CLI, {len(taken)} steps"
    print(f"{amount}, {strays_in_all} changes without a cause")
    for name, passed in strays:
        print(f"  {name}: {' -> '.join(passed)}")
    late = [t.seconds for t in taken]
    too_late = f"{sum(s > _STAY for s in late)} of {len(late)} later than {_STAY:.0f} s"
    print(f"cause -> shown: {spread([s * 1000 for s in late])}; {too_late}")
    confusion = Counter((t.step.state, t.passed[-1]) for t in taken)
    print("caused, and shown two seconds later:")
    for (caused, shown), times in sorted(confusion.items()):
        print(f"  {caused:17} {shown:17} {times:4}{'' if caused is shown else '   <- wrong'}")
