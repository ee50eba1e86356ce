"""Flags read from rollouts: whatever form the call has, what is read never contradicts the environment.

The probes are really run (`flag_probes`); here they are written as every Codex writes commands and outputs.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable

import pytest

from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.engine.reduce.fleet import reduce
from agentdash.model.fleet import Fleet
from agentdash.model.observation import NETWORK_FLAG, SANDBOX_FLAG, UNSET, SandboxObservation
from tests.oracle.flag_probes import Probe, generate
from tests.unit.rollout_files import THREAD, answer, call, meta, response

SEEDS = (20261122, int(os.environ.get("AGENTDASH_SEED", "7")))
"""The second one may be set: other seeds find other cases."""
PROBES = 60
"""Of each seed; `test_flag_oracle` reads many more without the files."""


def unified_exec(probe: Probe) -> list[bytes]:
    head = f"Chunk ID: a1b2\nWall time: 0.1 seconds\nProcess exited with code {probe.exit_code}\nOutput:\n"
    return [call("exec_command", {"cmd": probe.script}), answer(head + probe.output)]


def shell_argv(probe: Probe) -> list[bytes]:
    metadata = {"exit_code": probe.exit_code, "duration_seconds": 0.1}
    output = json.dumps({"output": probe.output, "metadata": metadata})
    return [call("shell", {"command": [probe.shell, "-lc", probe.script]}), answer(output)]


def shell_command(probe: Probe) -> list[bytes]:
    output = f"Exit code: {probe.exit_code}\nWall time: 0.1 seconds\nOutput:\n{probe.output}"
    return [call("shell_command", {"command": probe.script}), answer(output)]


def code_mode(probe: Probe) -> list[bytes]:
    js = f"const r = await tools.exec_command({{cmd: {json.dumps(probe.script)}}});\ntext(JSON.stringify(r));"
    result = json.dumps({"output": probe.output, "exit_code": probe.exit_code})
    parts = [
        {"type": "input_text", "text": "Script completed\nWall time 0.1 seconds\nOutput:\n"},
        {"type": "input_text", "text": result},
    ]
    return [
        response("custom_tool_call", name="exec", call_id="c1", input=js),
        response("custom_tool_call_output", call_id="c1", output=parts),
    ]


FORMS: tuple[Callable[[Probe], list[bytes]], ...] = (unified_exec, shell_argv, shell_command, code_mode)


def observed(lines: list[bytes]) -> tuple[SandboxObservation, ...]:
    """Return the observations of a rollout with these lines."""
    fleet = reduce(Fleet(), RolloutReader(THREAD).read([meta(), *lines]))
    return fleet.threads[THREAD].observations


def contradictions(probe: Probe, observation: SandboxObservation) -> list[str]:
    """Return what was read and is not so; an empty flag counts as unset."""
    read = ((NETWORK_FLAG, observation.network_flag), (SANDBOX_FLAG, observation.sandbox_flag))
    truth = {name: probe.flags.get(name) or UNSET for name, _ in read}
    return [
        f"{name}: read {value}, is {truth[name]}" for name, value in read if value not in (None, truth[name])
    ]


@pytest.mark.timeout(600)
def test_flags_in_rollouts_never_contradict_the_environment() -> None:
    wrong: list[str] = []
    read = Counter[str]()
    for seed in SEEDS:
        print(f"seed {seed}")  # noqa: T201 - shown when the test fails
        for probe in generate(seed, PROBES):
            for form in FORMS:
                for observation in observed(form(probe)):
                    read[form.__name__] += 1
                    wrong += [
                        f"{seed}/{probe.number} {form.__name__}: {each}\n{probe.script}"
                        for each in contradictions(probe, observation)
                    ]
    assert wrong == []
    assert set(read) == {form.__name__ for form in FORMS}
    assert min(read.values()) > PROBES // 6, read
