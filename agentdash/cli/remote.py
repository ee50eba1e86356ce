"""`agentdash remote`: what other hosts lack to be watched. Nothing is installed there."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import Final

import click
from msgspec.structs import replace

import agentdash
from agentdash.cli import termination
from agentdash.cli.hosts import carrier_named
from agentdash.cli.options import SSH_CONFIG_OPTION, config_of, json_option
from agentdash.cli.output import console, print_document
from agentdash.collect.clock import SystemClock
from agentdash.collect.remote.carrier import Carrier
from agentdash.collect.remote.child import CommandFailedError, run_there
from agentdash.collect.remote.link import START_LIMIT_S, Link
from agentdash.model.remote import LinkState
from agentdash.report.doctor import DoctorCheck, DoctorReport, RemoteCheckReport, print_doctor

_LEAST_PYTHON: Final = (3, 11)
_MAX_OUTPUT_BYTES: Final = 1 << 20
_LIMIT_S: Final = 30.0
"""For one command there: ssh, and the start of Python on a busy machine."""
_PROBE: Final = """\
python3 -c 'import sys; print("python", *sys.version_info[:2])' 2>/dev/null || echo python none
python3 -c 'import venv, ensurepip' 2>/dev/null && echo venv yes
"""
_INSTALL: Final = (
    'PATH="$PATH:$HOME/.local/bin"; S=$HOME/.cache/agentdash-source; D=$HOME/.local/share/agentdash; '
    "mkdir -p $S && tar -xzC $S && python3 -m venv $D && $D/bin/pip install -q $S && "
    "mkdir -p $HOME/.local/bin && ln -sf $D/bin/agentdash $HOME/.local/bin/"
)
"""How a package is installed there, from an archive on its standard input."""
_SOURCES: Final = ("pyproject.toml", "README.md", "LICENSE", "agentdash", "man")
"""What of a checkout a package is built from."""


@click.group()
def remote() -> None:
    """Other hosts: see what one lacks to be watched with `--host`.

    \b
    agentdash remote check build1
    """


@remote.command()
@click.argument("host", required=False)
@click.option("--container", "containers", metavar="NAME", help="Check this container in place of HOST.")
@click.option("--carrier", "carriers", metavar="NAME=COMMAND", help="Check what COMMAND reaches.")
@SSH_CONFIG_OPTION
@json_option("remote-check/1")
def check(
    host: str | None, as_json: bool, containers: str | None, carriers: str | None, ssh_config: Path | None
) -> int:
    """Check whether HOST ([USER@]HOST[:PORT], or a name of the configuration) can be watched.

    Where agentdash is missing there, the line is printed that installs this one. Nothing is installed.

    Exit code 0: it can be watched. 1: it cannot.

    \b
    agentdash remote check build1
    agentdash remote check me@gpu2:2222 --json
    agentdash remote check --container devbox
    """
    given = {"hosts": host, "containers": containers, "carriers": carriers}
    named = {kind: (value,) for kind, value in given.items() if value is not None}
    if len(named) != 1:
        raise click.UsageError("name one host: HOST, --container NAME or --carrier NAME=COMMAND")
    config = config_of({"ssh_config": ssh_config, **named})
    (carrier,) = (carrier_named(name, config) for name in config.hosts)
    checks = termination.run(_checks(carrier))
    report = RemoteCheckReport(schema="agentdash.remote-check/1", host=carrier.name, checks=checks)
    if as_json:
        print_document(report)
    else:
        _print(checks)
    return report.exit_code


def _print(checks: list[DoctorCheck]) -> None:
    """Print the checks; a command to copy stands below them on a line of its own, which is not wrapped."""
    commands = [each.advice for each in checks if each.advice and "|" in each.advice]
    below = "install it there with the line below"
    rows = [replace(each, advice=below) if each.advice in commands else each for each in checks]
    print_doctor(DoctorReport(schema="agentdash.doctor/1", checks=rows), console())
    for command in commands:
        click.echo(f"\n{command}")


async def _checks(carrier: Carrier) -> list[DoctorCheck]:
    try:
        probe = await run_there(carrier.shell(_PROBE), limit_s=_LIMIT_S, max_bytes=_MAX_OUTPUT_BYTES)
    except CommandFailedError as error:
        return [DoctorCheck("connection", "fail", str(error))]
    facts = dict(
        line.split(" ", 1) for line in probe.output.decode("utf-8", "replace").splitlines() if " " in line
    )
    if "python" not in facts:
        detail = probe.error or f"{carrier.before[0]} ended with exit code {probe.code}"
        advice = f"try: {shlex.join(carrier.before)} true" if carrier.before[0] == "ssh" else None
        return [DoctorCheck("connection", "fail", detail, advice)]
    checks = [DoctorCheck("connection", "ok", f"{carrier.before[0]} reaches it")]
    link = await _linked(carrier)
    if link.host.link.state is LinkState.CONNECTED:
        return [*checks, _link_check(link)]
    python = _python_check(facts)
    is_missing = "no agentdash there" in link.host.link.detail or "too old" in link.host.link.detail
    advice = _install_line(carrier) if is_missing and python.level == "ok" else None
    return [*checks, python, DoctorCheck("agentdash", "fail", link.host.link.detail, advice)]


async def _linked(carrier: Carrier) -> Link:
    """Return a link that is connected or lost."""
    link = Link(carrier, SystemClock(), lambda _: None)
    running = asyncio.create_task(link.run())
    try:
        async with asyncio.timeout(START_LIMIT_S + 1):
            await link.decided.wait()
    except TimeoutError:
        pass
    finally:
        running.cancel()
        await asyncio.wait((running,))
    return link


def _link_check(link: Link) -> DoctorCheck:
    version = link.host.link.version or "?"
    differs = f", {agentdash.__version__} here" if version != agentdash.__version__ else ""
    return DoctorCheck("agentdash", "ok", f"{version}{differs}, {len(link.host.workers)} workers")


def _python_check(facts: dict[str, str]) -> DoctorCheck:
    least = ".".join(map(str, _LEAST_PYTHON))
    words = facts["python"].split()
    version = tuple(int(word) for word in words if word.isdecimal())
    shown = ".".join(map(str, version)) or "none"
    if version < _LEAST_PYTHON:
        return DoctorCheck("python", "fail", f"python3 there: {shown}", f"install Python {least} or newer")
    if "venv" not in facts:
        return DoctorCheck("python", "fail", f"{shown}, without venv", "install it (Debian: python3-venv)")
    return DoctorCheck("python", "ok", shown)


def _install_line(carrier: Carrier) -> str:
    """Return the line that installs the agentdash of this machine's checkout there."""
    checkout = Path(agentdash.__file__).parent.parent
    if not (checkout / "pyproject.toml").is_file():
        return "install it there as it was installed here"
    send = shlex.join(["tar", "-C", str(checkout), "--exclude=__pycache__", "-cz", *_SOURCES])
    if carrier.settings.kind == "ssh":
        return f"{send} | {carrier.ssh_command(f'sh -c {shlex.quote(_INSTALL)}')}"
    return f"{send} | {shlex.join([*carrier.before, _INSTALL, *carrier.after])}"
