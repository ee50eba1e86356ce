"""Lines of widgets as text, and screens as they are painted."""

from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.spans import plain
from agentdash.tui.theme import ASCII, UNICODE, Look

from . import sample_fleet

LOOK = Look(sample_fleet.NOW, UNICODE)
ASCII_LOOK = Look(sample_fleet.NOW, ASCII)


def text(lines):
    """Return lines as text, without trailing spaces."""
    return "\n".join(plain(line).rstrip() for line in lines)


def rendered_strips(screen):
    """Return the rows of a screen as they are painted: the public `App.export_screenshot` has only an SVG."""
    return screen._compositor.render_strips()


def rows(app):
    """Return the rows of the open screen, each as wide as the terminal."""
    return [strip.text for strip in rendered_strips(app.screen)]


def screen_text(app):
    """Return the open screen as text."""
    return "\n".join(rows(app))


class Stage:
    """An app that runs, and shortcuts for tests."""

    def __init__(self, app, pilot):
        self.app, self.pilot = app, pilot

    async def press(self, *keys):
        await self.pilot.press(*keys)
        await self.pilot.pause()

    @property
    def name(self):
        """The name of the selected worker."""
        return self.app.worker.name if self.app.worker else ""

    @property
    def message(self):
        return plain(self.app.screen.query_one(Footer).line_at(0)).strip()
