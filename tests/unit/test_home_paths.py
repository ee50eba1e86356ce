"""Home directories by custom."""

import pytest

from agentdash.sandbox.home_paths import home_of


@pytest.mark.parametrize(
    ("directory", "home"),
    [
        ("/home/dev/project", "/home/dev"),
        ("/Users/dev/project", "/Users/dev"),
        ("/var/home/dev/project", "/var/home/dev"),
        ("/mnt/c/Users/dev/project", "/mnt/c/Users/dev"),
        ("/rooted", None),
        ("/srv/home/dev", None),
        ("/home", None),
        (None, None),
    ],
)
def test_a_home_is_known_by_its_place(directory: str | None, home: str | None) -> None:
    assert home_of(directory) == home
