"""Further faults: files of other encodings, names, schemas and types, and places that are no files."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.torture.faults import BAD, CLEAN, GOOD, Fault, Place

_NAMES: Final = ("\n", "\x1b]0;x\x07", "\u202e", "\udcff\udcfe", "%s{}", "\r", "\x9b31m")
_SURROGATES: Final = (
    rb'"type":"user_message","message":"\ud800 \udfff"',
    rb'"type":"agent_message","message":"x\udc80"',
    b'"type":"agent_message","message":"a","message":"b"',
    b'"type":"token_count","info":{"total_token_usage":{"input_tokens":1e999,"total_tokens":NaN}}',
    b'"type":"token_count","info":{"total_token_usage":{"input_tokens":' + b"9" * 10_000 + b"}}",
)
_ENDLESS_VIEW: Final = """
CREATE VIEW logs AS WITH RECURSIVE r(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM r)
SELECT id, 1 ts, 1 ts_nanos, 'codex_sandboxing::violation' target, 'x' thread_id, 'y' feedback_log_body FROM r
"""
_OTHER_TYPES: Final = """
sandbox_mode = 3
profile = [1]
projects = "x"
profiles = 7
permissions = [[]]
features = "no"
[sandbox_workspace_write]
writable_roots = 3
network_access = "no"
"""
_KERNEL_FILES: Final = ("/proc/kmsg", "/proc/self/mem", "/sys/kernel/debug/tracing/trace_pipe", "/dev/stdin")


def _content(place: Place) -> bytes:
    """Return a rollout beside the good one."""
    (good,) = place.day.iterdir()
    return good.read_bytes().replace(GOOD.encode(), BAD.encode())


def _changed(change: Callable[[bytes], bytes]) -> Callable[[Place], object]:
    return lambda place: place.bad.write_bytes(change(_content(place)))


def _named(place: Place) -> None:
    content = _content(place)
    for number, name in enumerate(_NAMES):
        (
            place.day / f"rollout-2026-11-20T22-03-53-01a1fafc-c823-7e21-b4b7-bad00000000{number}{name}.jsonl"
        ).touch()
        (place.day / f"rollout-{name}.jsonl").write_bytes(content)
        day = place.day.with_name(f"2{name}")
        (day / place.bad.name).mkdir(parents=True)
        place.day.with_name(f"3{name}").touch()


def _log(script: str) -> Callable[[Place], object]:
    def arrange(place: Place) -> None:
        database = sqlite3.connect(place.home / "logs_2.sqlite")
        database.executescript(script)
        database.close()

    return arrange


def _settings(write: Callable[[Path], object]) -> Callable[[Place], object]:
    """Return what writes the settings of Codex and of the project."""

    def arrange(place: Place) -> None:
        (place.cwd / ".codex").mkdir()
        for folder in (place.home, place.cwd / ".codex"):
            write(folder / "config.toml")

    return arrange


def _environment(name: str, value: str) -> Callable[[Place], object]:
    return lambda place: place.env.update({name: value})


ODD_FILES: Final = (
    Fault("rollout is UTF-16", _changed(lambda c: c.decode().encode("utf-16")), codes={"check": (2,)}),
    Fault("rollout's lines end in CRLF", _changed(lambda c: c.replace(b"\n", b"\r\n")), codes=CLEAN),
    Fault(
        "rollout has lone surrogates, two equal keys and no numbers",
        _changed(
            lambda c: (
                c
                + b"".join(
                    b'{"timestamp":"2026-11-20T22:04:00Z","type":"event_msg","payload":{%b}}\n' % payload
                    for payload in _SURROGATES
                )
            )
        ),
    ),
    Fault("rollouts and days have names with escapes, newlines and no UTF-8", _named),
    Fault("logs_2.sqlite is a view without end", _log(_ENDLESS_VIEW), codes=CLEAN),
    *(
        Fault(
            f"Codex's config.toml {what}",
            _settings(write),
            commands=("doctor --json", "preflight --json", "status --json --no-tmux"),
            codes={"doctor": (0, 1), "status": (0,)},
            goes_on=False,
        )
        for what, write in (
            ("has other types", lambda path: path.write_text(_OTHER_TYPES)),
            ("is a FIFO", os.mkfifo),
        )
    ),
    Fault(
        "files of the kernel as arguments",
        lambda place: None,
        commands=(
            *(f"check {file}" for file in _KERNEL_FILES),
            "replay /proc/kmsg --export {root}/out.md",
            "config check /proc/kmsg",
        ),
        codes=dict.fromkeys(("check", "replay", "config"), (2,)),
        goes_on=False,
    ),
    *(
        Fault(f"{name} is {value!r}", _environment(name, value), codes=CLEAN)
        for name, value in (
            ("TZ", "/dev/zero"),
            ("LC_ALL", "tr_TR.UTF-8"),
            ("XDG_STATE_HOME", "relative"),
            ("COLUMNS", "99999999999"),
        )
    ),
)
