"""Flags in scripts as models write them, run by the real interpreters: what is read, and what is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentdash.model.observation import NETWORK_FLAG, SANDBOX_FLAG, UNSET
from agentdash.sandbox.flags import read_flags
from tests.oracle.flag_probes import run_script

BOTH = {NETWORK_FLAG: "1", SANDBOX_FLAG: "seatbelt"}

SCRIPTS = r"""
env > env.txt && grep CODEX env.txt && rm env.txt
---
python3 -c "import os; print(os.environ.get('SB'), os.environ.get('NET'), sep='\n')"
---
python3 -c 'import os; [print(k, v) for k, v in os.environ.items() if "CODEX" in k]'
---
python3 - <<'PY'
import os
names = ["SB", "NET"]
for name in names:
    print(name, "=", os.environ.get(name, "<unset>"))
PY
---
python3 -c "import os, json; print(json.dumps({k: os.environ.get(k) for k in ['SB', 'NET']}))"
---
python3 -c "import os; [print(f'{k}={os.environ.get(k)}') for k in ('SB','NET')]"
---
python3 -c "from os import environ; print(environ.get('SB'), environ.get('NET'))"
---
python3 - <<'PY'
import os
v = os.environ.get("NET")
if v:
    print("disabled", v)
else:
    print("enabled")
print("sandbox", os.environ.get("SB", "none"))
PY
"""
"""With SB and NET for the names of the flags."""


def read(script: str, flags: dict[str, str], folder: Path) -> tuple[str | None, str | None]:
    """Run a script with some flags set; return what is read of its output."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/home/dev", **flags}
    named = script.replace("NET", NETWORK_FLAG).replace("SB", SANDBOX_FLAG)
    output, code = run_script("bash", named, environment, folder / "scratch")
    found = read_flags(named, output, exit_code=code)
    return found.network, found.sandbox


@pytest.mark.parametrize("script", SCRIPTS.strip("\n").split("\n---\n"))
def test_both_are_read(script: str, tmp_path: Path) -> None:
    assert read(script, BOTH, tmp_path) == ("1", "seatbelt")
    assert read(script, {}, tmp_path) == (UNSET, UNSET)


def test_a_missing_key_ends_python(tmp_path: Path) -> None:
    script = "python3 -c \"import os; print(os.environ['SB'], os.environ['NET'])\""
    assert read(script, BOTH, tmp_path) == ("1", "seatbelt")
    assert read(script, {}, tmp_path) == (None, None)


def test_being_in_the_environment_is_no_value(tmp_path: Path) -> None:
    script = "python3 -c \"import os; print('SB' in os.environ, 'NET' in os.environ)\""
    assert read(script, BOTH, tmp_path) == (None, None)
    assert read(script, {}, tmp_path) == (UNSET, UNSET)


@pytest.mark.parametrize(
    "script",
    [
        "env > a; echo SB=seatbelt > a; echo NET=1 >> a; cat a",
        "env > a; cp env.sample a; grep SB a",
        "env > a; ./printer.sh > b; grep SB b",
        "env > missing/a; grep SB .env",
        "env > a; (cat .env > a); grep SB a",
        "env | tee a | cat > b; cat .env > a; grep SB a",
        'env > a; python3 -c \'open("a", "w").write("SB=seatbelt")\'; grep SB a',
        'v=$(grep SB .env); echo "$v"',
        "env > a; v=$(cat .env > a); grep SB a",
        'python3 -c \'import os; os.environ["SB"] = "seatbelt"; print(os.environ["SB"])\'',
        'python3 -c \'import os; [print(k, v) for k, v in dict(SB="seatbelt").items()]; os.getenv("SB")\'',
    ],
)
def test_text_from_elsewhere(script: str, tmp_path: Path) -> None:
    assert set(read(script, {}, tmp_path)) <= {None, UNSET}
    assert set(read(script, {SANDBOX_FLAG: "docker"}, tmp_path)) <= {None, UNSET}
    assert read(script, {SANDBOX_FLAG: "docker"}, tmp_path)[1] is None
