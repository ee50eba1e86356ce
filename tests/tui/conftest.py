import time

import pytest


@pytest.fixture(autouse=True)
def _same_everywhere(monkeypatch):
    """Fix time zone and terminal, and unset what else changes colours: screens are compared cell by cell."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "COLORTERM", "FORCE_COLOR", "TEXTUAL_THEME", "TEXTUAL_ANIMATIONS"):
        monkeypatch.delenv(name, raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
