"""Draw the pictures from the demo and the recordings: `python -m screenshots.make [FOLDER]`.

README and the documentation show them.

The files are reproducible: a test compares them.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, chdir, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from agentdash.agents.codex.home import CodexHome
from agentdash.demo.day import DayConversations, demo_events, demo_hub, demo_scenes
from agentdash.engine.hub import Hub
from agentdash.engine.user_attention import UserAttention
from agentdash.model.events import Event, decode, encode
from agentdash.replay.clock import VirtualClock
from agentdash.replay.family import Family
from agentdash.replay.library.library import Library
from agentdash.replay.player import Player
from agentdash.replay.streams import FileStream
from agentdash.tui.app import AgentDash, DemoApp, Options
from agentdash.tui.library.app import LibraryApp
from agentdash.tui.library.list import LibraryModel
from agentdash.tui.replay_app import ReplayApp
from screenshots.moving import moving
from screenshots.sessions import write_sessions


class Picture(NamedTuple):
    """A picture: size, seconds into the demo, and the keys to press."""

    name: str
    size: tuple[int, int]
    at: float
    keys: tuple[str, ...] = ()
    scene: str = "today"
    theme: str = "dark"

    @property
    def file(self) -> str:
        """The name of its file: `fleet.svg`, `fleet-light.svg`."""
        return f"{self.name}.svg" if self.theme == "dark" else f"{self.name}-{self.theme}.svg"


THEMES = ("dark", "light")
"""Each picture is drawn in both: pages show the one that their reader's browser asks for."""

PICTURES = tuple(
    picture._replace(theme=theme)
    for theme in THEMES
    for picture in (
        Picture("fleet", (120, 36), 44),
        Picture("split", (45, 50), 44),
        Picture("why", (120, 36), 26, keys=("w",)),
        Picture("replay", (120, 36), 44, scene="past"),
        Picture("library", (120, 36), 0, keys=("/", *"since:14d", "enter", "g", "j", "z"), scene="library"),
    )
)

FRAMES = (
    (Picture("moving", (120, 36), 4, scene="story"), 3),
    (Picture("moving", (120, 36), 9, keys=("w",), scene="story"), 5),
    (Picture("moving", (120, 36), 14, scene="story"), 3),
    (Picture("moving", (120, 36), 20, keys=("m", "j"), scene="story"), 5),
    (Picture("moving", (120, 36), 26, keys=("Y",), scene="story"), 4),
    (Picture("moving", (120, 36), 34, scene="story"), 2),
    (Picture("moving", (120, 36), 44, scene="story"), 5),
)
"""The frames of the animation, and for how many seconds each is shown."""


async def draw(picture: Picture) -> str:
    """Return a picture as SVG."""
    with SCENES[picture.scene](picture.at, picture.theme) as (hub, app):
        async with app.run_test(size=picture.size) as pilot:
            running = asyncio.create_task(hub.run())
            if isinstance(app, LibraryApp):
                await app.workers.wait_for_complete()
                await pilot.pause()
                app.rearrange_if_stale()
            else:
                while app.snapshot is None or app.snapshot is not hub.snapshot:  # a slow machine takes longer
                    await pilot.pause(0.01)
            await pilot.pause()
            for key in picture.keys:
                await pilot.press(key)
            await pilot.pause()
            while isinstance(app, AgentDash) and not app.is_at_rest:
                await pilot.pause(0.01)
            await pilot.pause()  # what is shown at rest has its layout
            running.cancel()
            svg = app.export_screenshot(title="agentdash")
    # Rich makes class names unique per run; the same picture is to be the same file
    return re.sub(r"terminal-\d+", f"agentdash-{picture.name}", svg)


@contextmanager
def today(at: float, theme: str) -> Iterator[tuple[Hub, AgentDash]]:
    """Provide the demo at a time (seconds)."""
    hub, clock = demo_hub(at=at)
    clock.set(paused=True)
    options = Options(theme=theme, open_conversation=DayConversations(clock).open)
    yield hub, AgentDash(hub, clock, options=options)


@contextmanager
def story(at: float, theme: str) -> Iterator[tuple[Hub, AgentDash]]:
    """Provide the demo as its users see it, with captions, at a time (seconds)."""
    hub, clock = demo_hub(at=at)
    clock.set(paused=True)
    options = Options(theme=theme, banner="DEMO", open_conversation=DayConversations(clock).open)
    user = UserAttention(hub, clock)
    yield hub, DemoApp(hub, clock, demo_scenes(), options=options, attention=user)


class EventLineReader:
    """Reader of a file with one encoded event a line."""

    at = 0.0

    def read(self, lines: Iterable[bytes], first: int = 1) -> list[Event]:
        del first
        events: list[Event] = [decode(line) for line in lines]
        self.at = events[-1].at
        return events


@contextmanager
def past(at: float, theme: str) -> Iterator[tuple[Hub, AgentDash]]:
    """Provide a replay of the demo at a time (seconds)."""
    start, events = demo_events()
    clock = VirtualClock(0)
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.write(b"".join(encode(event) + b"\n" for event in sorted(events, key=lambda event: event.at)))
        file.flush()
        player = Player(Family("", ()), clock, extra=[FileStream(Path(file.name), EventLineReader())])
        player.index.read()
        player.toggle()
        player.seek_time(start + at)
        hub = Hub([player], clock)
        yield hub, ReplayApp(hub, clock, player, export=lambda _: "", options=Options(theme=theme))


@contextmanager
def library(_: float, theme: str) -> Iterator[tuple[Hub, LibraryApp]]:
    """Provide the library over the sessions of two weeks."""
    clock = VirtualClock(0)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        home = Path("~/.codex")
        write_sessions(home)
        clock.set(now=1_795_376_400.0, paused=True)
        app = LibraryApp(
            library=Library(CodexHome(home), clock),
            model=LibraryModel(),
            clock=clock,
            options=Options(theme=theme),
            export=lambda *_: "",
        )
        yield Hub([], clock), app


_Scene = AbstractContextManager[tuple[Hub, AgentDash | LibraryApp]]
SCENES: Final[dict[str, Callable[[float, str], _Scene]]] = {
    "today": today,
    "story": story,
    "past": past,
    "library": library,
}


async def draw_moving(theme: str) -> str:
    """Return the animation as SVG."""
    drawn = [await draw(picture._replace(theme=theme)) for picture, _ in FRAMES]
    return moving(drawn, [seconds for _, seconds in FRAMES])


def main(folder: Path) -> None:
    """Draw all pictures into `folder`."""
    for picture in PICTURES:
        (folder / picture.file).write_text(asyncio.run(draw(picture)), "utf-8")
    for theme in THEMES:
        name = Picture("moving", (0, 0), 0, theme=theme).file
        (folder / name).write_text(asyncio.run(draw_moving(theme)), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
