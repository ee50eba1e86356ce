"""Every key that the rules of Codex's configuration look up is kept when a file is parsed, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentdash.agents.codex.config.argv import parse_options
from agentdash.agents.codex.config.files import KEPT, ConfigFile
from agentdash.agents.codex.config.reader import read_request, read_role
from agentdash.model.policy import Network
from tests.live.codex_settings import ALL, Settings

_ROLE = '[agents.tester]\nconfig_file = "tester.toml"\n'


def write(settings: Settings, root: Path) -> None:
    """Write the files of a row of the matrix that real programs are run with, and a role."""
    trust = f'[projects."/w"]\ntrust_level = "{settings.trust}"\n' if settings.trust else ""
    for path, text in {
        "h/config.toml": settings.top + settings.tables + trust + _ROLE,
        "h/tester.toml": 'name = "tester"\n',
        "h/x.config.toml": settings.profile,
        "w/.codex/config.toml": settings.project,
        "etc/codex/requirements.toml": settings.requirements,
        "etc/codex/managed_config.toml": settings.managed,
        "etc/codex/config.toml": settings.system,
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text or "", "utf-8")


def test_every_key_that_is_looked_up_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: set[str] = set()
    get = ConfigFile.get

    def recorded(self: ConfigFile, *keys: str) -> Any:
        looked_up.add(keys[0])
        return get(self, *keys)

    monkeypatch.setattr(ConfigFile, "get", recorded)
    for number, settings in enumerate(ALL):
        root = tmp_path / str(number)
        write(settings, root)
        read_request(parse_options(settings.args), "/h", "/w", "0.171.0", root)
        read_role("tester", home="/h", cwd="/w", root=root, since=0.0, at=1.0)
    assert looked_up == KEPT


@pytest.mark.parametrize(
    ("option", "network"),
    [
        ("-c features.network_proxy=true", Network.MEDIATED),
        ("--enable network_proxy", Network.MEDIATED),
        ("-c features.network_proxy.enabled=true", Network.MEDIATED),
        ("--disable network_proxy", Network.ON),
        ("-c features.network_proxy=false", Network.ON),
    ],
)
def test_proxy_of_an_option(option: str, network: Network, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        'sandbox_mode = "workspace-write"\n[sandbox_workspace_write]\nnetwork_access = true\n'
        f"[features]\nnetwork_proxy = {'true' if network is Network.ON else 'false'}\n",
        "utf-8",
    )
    found = read_request(parse_options(option.split()), str(tmp_path), "/w", "0.171.0", Path("/"))
    assert found.given is not None
    assert found.given.network is network
