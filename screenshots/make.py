"""Draws the README's pictures from the demo: `python -m screenshots.make [FOLDER]`. The same demo gives the same pictures."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import NamedTuple

from agentdash.demo.play import demo_hub
from agentdash.tui.app import AgentDash, Options


class Picture(NamedTuple):
    """One picture: which moment of the demo, how large, and what was pressed before."""

    name: str
    size: tuple[int, int]
    at: float
    keys: tuple[str, ...] = ()


PICTURES = (
    Picture("fleet", (120, 36), 26, ("!",)),
    Picture("split", (45, 50), 26),
    Picture("strip", (150, 8), 26),
    Picture("why", (120, 36), 26, ("a", "w")),
    Picture("wide", (200, 50), 60, ("!",)),
)


async def draw(picture: Picture) -> str:
    """The picture as SVG."""
    hub, clock = demo_hub(at=picture.at)
    clock.set(paused=True)
    app = AgentDash(hub, clock, options=Options(theme="dark"))
    async with app.run_test(size=picture.size) as pilot:
        running = asyncio.create_task(hub.run())
        async for _ in hub.snapshots():
            break
        await pilot.pause()
        for key in picture.keys:
            await pilot.press(key)
        await pilot.pause()
        running.cancel()
        svg = app.export_screenshot(title="agentdash")
    # Rich makes names unique per run; here the same picture shall be the same file
    return re.sub(r"terminal-\d+", f"agentdash-{picture.name}", svg)


def main(folder: Path) -> None:
    """Draws all of them into `folder`."""
    for picture in PICTURES:
        (folder / f"{picture.name}.svg").write_text(asyncio.run(draw(picture)), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
