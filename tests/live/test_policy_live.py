"""Predicted write access of random policies, compared with a process in Codex's own sandbox."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from agentdash.agents.codex.policy_formats import from_profile
from tests.live.clis import new_root
from tests.live.codex import install
from tests.live.programs import run

FOLDERS = (
    *("ws", "ws/src", "ws/.git", "ws/.codex", "ws/src/.git"),
    *("other", "other/.agents", "other/deep/er", "secret", "secret/open"),
)
"""Directories that exist."""
TRY = 'for p in "$@"; do if ( : > "$p/probe" ) 2>/dev/null; then echo "$p"; fi; done'
"""Prints the directories in which a file can be made."""
ROOT = {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}
accesses = st.sampled_from(("read", "write", "write", "deny"))


class Tree:
    """A tree of directories, and Codex's sandbox helper over it; not in /tmp, which has special rules."""

    def __init__(self, helper: Path, root: Path) -> None:
        self._helper, self.root = helper, root
        for folder in FOLDERS:
            (root / folder).mkdir(parents=True, exist_ok=True)

    @property
    def folders(self) -> list[str]:
        return [str(self.root), *(str(self.root / folder) for folder in FOLDERS)]

    def written(self, profile: Mapping[str, Any], cwd: str) -> set[str]:
        """Return the directories that a process with this profile can write."""
        where = ["--sandbox-policy-cwd", cwd, "--command-cwd", cwd]
        arguments = [*where, "--permission-profile", json.dumps(profile), "--"]
        command = [str(self._helper), *arguments, "bash", "-c", TRY, "try", *self.folders]
        # without the user's .bashrc, which bash may read here too, and what that prints
        done = run(command, cwd=cwd, env={**os.environ, "HOME": str(self.root), "BASH_ENV": ""})
        if done.stderr.startswith("bwrap: Can't "):
            reject()  # bwrap cannot build some that deny a directory and name one below it
        assert done.stderr == "", (profile, done.stderr)
        return set(done.stdout.split())


@pytest.fixture(scope="module")
def tree() -> Iterator[Tree]:
    codex = install()
    (binary,) = codex.parents[1].glob("@openai/codex-linux-*/vendor/*/bin/codex")
    scratch = new_root()
    # Codex chooses its program by the name that it is started by, and bwrap starts it again by the same path
    helper = scratch / "codex-linux-sandbox"
    helper.symlink_to(binary)
    yield Tree(helper, scratch / "tree")
    shutil.rmtree(scratch)


def profile(root: Path, entries: Sequence[tuple[str, str]], *, tmp: bool, network: bool) -> dict[str, Any]:
    named = [
        {"path": {"type": "path", "path": str(root / path)}, "access": access} for path, access in entries
    ]
    special = (
        [{"path": {"type": "special", "value": {"kind": "slash_tmp"}}, "access": "write"}] if tmp else []
    )
    files = {"type": "restricted", "entries": [ROOT, *special, *named]}
    return {"type": "managed", "file_system": files, "network": "enabled" if network else "restricted"}


@settings(max_examples=50, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    entries=st.dictionaries(st.sampled_from(FOLDERS), accesses, max_size=5),
    cwd=st.sampled_from(("ws", "other")),
    tmp=st.booleans(),
    network=st.booleans(),
)
def test_random_policies(tree: Tree, entries: dict[str, str], cwd: str, tmp: bool, network: bool) -> None:
    described = profile(tree.root, list(entries.items()), tmp=tmp, network=network)
    where = str(tree.root / cwd)
    policy = from_profile(described, (where,))
    predicted = {
        folder for folder in tree.folders if policy.may_write(f"{folder}/probe", os.environ.get("TMPDIR"))
    }
    assert tree.written(described, where) == predicted
