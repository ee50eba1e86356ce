"""The filter of the fleet: buckets and words."""

import pytest

from agentdash.tui.fleet.filter import BUCKET_NAMES, Filter, matches

from .sample_fleet import BY_NAME, SNAPSHOT

WORKERS = SNAPSHOT.workers


def test_every_state_is_in_one_bucket():
    assert WORKERS
    for worker in WORKERS:
        shown_in = {name for name in BUCKET_NAMES if Filter(name).accepts(worker)} - {"all", "mismatch"}
        assert shown_in == {worker.group}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("WAITING approval", {"Pasteur the Younger", "api-worker"}),
        ("opencode 1.0.150", {"fix tests"}),
        ("%4 codex", {"api-worker"}),
        ("stale-network-flag /home", {"Pasteur"}),
        ("custom files, network via proxy", {"データベース移行の調査"}),
        ("mismatch deploy", {"deploy"}),
        ("state:waiting agent:codex", {"Pasteur the Younger", "api-worker"}),
        ("cwd:approval", set()),
        ("no such thing", set()),
    ],
)
def test_words_match_in_all_columns(text, found):
    assert {worker.name for worker in WORKERS if matches(worker, text)} == found
    assert {worker.name for worker in WORKERS if matches(worker, "!" + text)} == set(BY_NAME) - found


@pytest.mark.parametrize("text", ["", "!", " ", "! "])
def test_empty_filter_accepts_all(text):
    assert all(matches(worker, text) for worker in WORKERS)
    assert not Filter(text=text).active
