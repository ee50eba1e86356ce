"""System calls that fail: chosen at random, by a seed that the row names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.torture import injection
from tests.torture.scenes import scene
from tests.torture.stage import Stage

SEEDS: Final = range(20)


def _add(seed: int) -> None:
    @scene(f"system calls fail at random, seed {seed}", missing=injection.missing)
    def play(stage: Stage) -> Iterator[str]:
        yield from injection.problems(seed, stage.place, stage.uid)


for _seed in SEEDS:
    _add(_seed)
