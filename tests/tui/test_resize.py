"""Sizes of the terminal that change faster than the dashboard is laid out."""

import asyncio

import pytest
from textual.events import Callback, Resize
from textual.geometry import Size

from . import sample_fleet

MANY_LAYOUTS = 50


@pytest.mark.parametrize("keys", [(), ("question_mark",), ("enter",)], ids=["fleet", "help", "worker"])
async def test_two_sizes_that_wait_are_laid_out_once(monkeypatch, keys):
    app = sample_fleet.dashboard()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*keys)
        await pilot.pause()
        screen, layouts = app.screen, []
        lay_out = screen._refresh_layout

        def count(size=None, scroll=False):
            layouts.append(size)
            if len(layouts) == MANY_LAYOUTS:  # nothing but an end of the app would stop them
                app.exit()
            lay_out(size, scroll)

        monkeypatch.setattr(screen, "_refresh_layout", count)
        with app.batch_update():
            old, new = Size(120, 36), Size(45, 50)
            app._size = new
            for size in (old, new):
                screen.post_message(Resize(size, size))
                screen.post_message(Callback(callback=lambda: None))
            await asyncio.sleep(0.1)
            await pilot.pause()
        await pilot.pause()
        assert len(layouts) < MANY_LAYOUTS
        assert (screen.size, layouts[0]) == (new, new)
