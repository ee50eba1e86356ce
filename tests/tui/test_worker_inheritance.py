"""The Sandbox tab: the family's sandboxes, and predicted denials."""

from agentdash.model.state_paths import Installed, StatePath
from agentdash.tui.worker.inheritance import inheritance

from . import sample_fleet
from .rendering import LOOK, text
from .sample_fleet import BY_NAME


def test_family_table():
    pasteur = BY_NAME["Pasteur"]
    shown = text(
        inheritance(
            pasteur, [w for w in sample_fleet.full_fleet().workers if w.depth or w.children], None, 100, LOOK
        )
    ).splitlines()
    names = [line.split()[0] for line in shown[1:5]]
    assert names == ["main", "Lagrange", "Pasteur", "Pasteur"]
    assert "≠ flag 1, seatbelt, host's net, no sandbox" in shown[3]
    assert "ws net-" in shown[4]  # told less than its parent
    assert any("flag=; sandbox=  (against)" in line for line in shown)
    assert shown[-1].startswith("not known: the kernel's facts")


def test_predicted_denials_of_worker_clis():
    rows = (
        StatePath("$XDG_DATA_HOME/opencode", "sessions database", "always"),
        StatePath("$PWD/.cache", "nothing much"),
    )
    installed = Installed({"opencode": rows, "aider": rows[1:]}, {"HOME": "/home/dev"})
    worker = BY_NAME["api-worker"]
    shown = text(inheritance(worker, [worker], installed, 100, LOOK))
    assert "opencode  /home/dev/.local/share/opencode (sessions database, needed)" in shown
    assert "aider" not in shown
    assert "would deny" not in text(inheritance(BY_NAME["Pasteur"], [], installed, 100, LOOK))
