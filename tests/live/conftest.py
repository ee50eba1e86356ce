"""What live tests share. They fail, rather than skip, where npm or tmux is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.live.codex import Lab, SetupError, install
from tests.live.model_server import Script

OpenLab = Callable[..., Lab]
"""`codex(script, config="", version=...) -> Lab`"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first live test may have to download a Codex."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture
def codex() -> Iterator[OpenLab]:
    """Opens labs; ends all that runs in them when the test is over."""
    with ExitStack() as labs:

        def open_lab(script: Script, config: str = "", **version: str) -> Lab:
            try:
                lab = Lab(install(**version), script, config)
            except SetupError as error:
                pytest.fail(str(error), pytrace=False)
            labs.callback(lab.close)
            return lab

        yield open_lab
