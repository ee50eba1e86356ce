"""The way back to the dashboard: which process is one, and which key of tmux leads there."""

import pytest

from agentdash.cli.split import is_dashboard
from agentdash.collect.tmux.actions import _way_back

KEYS = r"""
bind-key    -T prefix \;      last-pane
bind-key -r -T prefix Up      select-pane -U
bind-key    -T prefix L       switch-client -l
bind-key    -T prefix l       last-window
"""


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ("/home/dev/.venv/bin/agentdash -L work", True),
        ("/usr/bin/python3.11 -m agentdash", True),
        ("python -I /home/dev/.venv/bin/agentdash demo --speed 4", True),
        ("python3 agentdash.pyz replay", True),
        ("/usr/bin/python3 /usr/bin/agentdash status --follow", False),
        ("python -m http.server", False),
    ],
)
def test_which_program_is_a_dashboard(argv: str, expected: bool) -> None:
    assert is_dashboard(argv.split()) is expected


@pytest.mark.parametrize(
    ("there", "keys", "way"),
    [
        (["$1", "@7"], KEYS, "C-b L goes back"),
        (["$0", "@7"], KEYS, "C-b l goes back"),
        (["$0", "@1"], KEYS, "C-b ; goes back"),
        (["$1", "@7"], 'bind-key -T prefix D run-shell "agentdash back"\n' + KEYS, "C-b D goes back"),
        (["$1", "@7"], "bind-key -T prefix D run-shell 'agentdash status'", "`agentdash back` goes back"),
    ],
)
def test_which_key_goes_back(there: list[str], keys: str, way: str) -> None:
    assert _way_back(["$0", "@1", "1:dash", "/dev/pts/1", "C-b"], there, keys) == way
