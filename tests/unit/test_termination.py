"""Signals that end a process."""

import signal
import subprocess
import sys

import pytest

IN_A_CALLBACK = """
import os, signal, sys, time, weakref
from agentdash.cli import termination

class Target:
    pass

def callback(_):
    os.kill(os.getpid(), int(sys.argv[1]))
    for _ in range(1000):  # the handler runs here
        pass

signal.signal(int(sys.argv[1]), signal.SIG_DFL)  # the tests may run below `nohup`
termination.install()
target = Target()
reference = weakref.ref(target, callback)
del target
time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_signal_in_a_callback_is_not_lost(number: signal.Signals) -> None:
    """Python ignores what is raised there, as in the callbacks of imports, and prints a traceback."""
    command = [sys.executable, "-c", IN_A_CALLBACK, str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (128 + number, "")
