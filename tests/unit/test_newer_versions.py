"""A version that is newer than all that were measured loses no layer, no state, no finding and no row: it is
read by the rules of the newest measured one, and that is said."""

import re
from pathlib import Path

import msgspec
import pytest

from agentdash.agents.claude.transcript.reader import TranscriptReader
from agentdash.agents.codex.config.argv import parse_options
from agentdash.agents.codex.config.precedence import LAST_MEASURED
from agentdash.agents.codex.config.reader import read_request
from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model import events as e
from agentdash.model.fleet import Fleet
from agentdash.model.versions import stand_in
from tests.unit.rollout_files import RECORDINGS

NEWER = ("0.175.0", "0.172.1-alpha.3", "1.0.0", "0.0.0")
LATER = 2e9
NEWEST_RECORDED = sorted((RECORDINGS / "0.169.0").iterdir())


def judged(scenario: Path, version: str) -> bytes:
    """Return the workers of a recording as they are judged, with another version in its files."""
    events: list[e.Event] = []
    for path in sorted(scenario.glob("*.jsonl")):
        text = path.read_bytes().replace(b'"cli_version":"0.169.0"', f'"cli_version":"{version}"'.encode())
        thread = re.search(r"([0-9a-f]{8}-[0-9a-f-]{27})\.jsonl$", path.name)
        assert thread
        assert version.encode() in text
        events += RolloutReader(thread[1]).read(text.splitlines())
    events += [e.LocksSeen(at=LATER, holders={}), e.ProcessesCounted(at=LATER)]
    workers = build_snapshot(reduce(Fleet(), events), LATER).workers
    assert workers
    return msgspec.json.encode(workers, enc_hook=str).replace(f'"{version}"'.encode(), b'"V"')


@pytest.mark.parametrize("version", NEWER)
def test_recordings_of_a_newer_version_are_judged_as_those_of_the_newest_measured(version: str) -> None:
    for scenario in NEWEST_RECORDED:
        assert judged(scenario, version) == judged(scenario, "0.169.0"), scenario.name


def test_transcripts_of_a_newer_claude_code_are_read_as_those_of_the_newest_measured() -> None:
    for path in sorted((RECORDINGS.parent / "claude/2.1.330").rglob("*.jsonl")):
        text = path.read_bytes()
        newer = text.replace(b'"version":"2.1.330"', b'"version":"2.9.1"')
        read, known = (TranscriptReader("t").read(each.splitlines()) for each in (newer, text))
        assert repr(read).replace("2.9.1", "2.1.330") == repr(known), path


@pytest.mark.parametrize("version", NEWER)
def test_request_of_a_newer_version(version: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('sandbox_mode = "read-only"\n', "utf-8")
    found, known = (
        read_request(parse_options([]), str(tmp_path), str(tmp_path), each, Path("/"))
        for each in (version, f"{LAST_MEASURED}.0")
    )
    assert found == msgspec.structs.replace(known, rules_of=LAST_MEASURED)
    assert found.origins
    assert found.given is not None


@pytest.mark.parametrize(
    ("version", "measured", "rules"),
    [
        ("0.171.0", "0.171", None),
        ("0.172.0", "0.171", "0.171"),
        ("0.0.0", "0.171", "0.171"),
        ("0.169.0", "0.171", None),
        (None, "0.171", None),
        ("2.1.332", "2.1.332", None),
        ("2.1.333", "2.1.332", "2.1.332"),
    ],
)
def test_rules_that_stand_in(version: str | None, measured: str, rules: str | None) -> None:
    assert stand_in(version, measured) == rules
