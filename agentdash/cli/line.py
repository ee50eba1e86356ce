"""`agentdash line`: the fleet in a few words, for status lines and prompts.

In the usual case `agentdash.__main__` answers before click is imported.
"""

from __future__ import annotations

from typing import Any

import click

from agentdash.agents.codex.home import default_home
from agentdash.cli.options import CODEX_HOME_OPTION, config_of
from agentdash.report.line import print_line


@click.command()
@CODEX_HOME_OPTION
@click.option("--tmux", is_flag=True, help="With the colours of tmux's status line.")
def line(tmux: bool, **given: Any) -> int | None:
    """Print the fleet in a few words, from the status file: for tmux's status line and shell prompts.

    Exit code 2: neither the dashboard nor `agentdash publish` runs, which write that file.

    \b
    agentdash line                                    2 need you 14m, 3 running, 1 mismatch
    set -g status-right '#(agentdash line --tmux)'    in ~/.tmux.conf
    """
    home = config_of(given).codex_home or default_home()
    return print_line(str(home.expanduser().resolve()), tmux=tmux)
