"""Uses of private names of Textual, each with its reason. No other module uses one.

Tried with Textual 8.2.8, the version that pyproject.toml pins for tests.
"""

from __future__ import annotations

from textual.screen import Screen
from textual.strip import Strip


def rendered_strips(screen: Screen[object]) -> list[Strip]:
    """Return the rows of a screen as they are painted.

    `Screen._compositor`: the public `App.export_screenshot` returns only an SVG.
    """
    return screen._compositor.render_strips()
