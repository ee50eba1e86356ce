"""The Sandbox tab: the family's sandboxes, and predicted denials."""

from msgspec.structs import replace

from agentdash.model.layers import DifferingField, LayerField
from agentdash.model.state_paths import PathAccess, PredictedDenials, WriteAccess
from agentdash.tui.worker.inheritance import inheritance

from . import sample_fleet
from .rendering import LOOK, text
from .sample_fleet import BY_NAME


def test_family_table():
    pasteur = BY_NAME["Pasteur"]
    shown = text(
        inheritance(
            pasteur, [w for w in sample_fleet.full_fleet().workers if w.depth or w.children], 106, LOOK
        )
    ).splitlines()
    names = [line.split()[0] for line in (*shown[1:4], shown[5])]
    assert names == ["main", "Lagrange", "Pasteur", "Pasteur"]
    assert "≠ no sandbox, the host's" in shown[3]
    assert shown[4].strip().endswith("CODEX_SANDBOX seatbelt")
    assert "workspace/off" in shown[5]  # grants less than its parent's
    assert any("flag=; sandbox=  (against)" in line for line in shown)
    assert shown[-1].startswith("not known: the kernel's facts")


def test_predicted_denials_of_worker_clis():
    access = WriteAccess("policy")
    path = PathAccess("/home/dev/.local/share/opencode", "sessions database", access, needed=True)
    worker = BY_NAME["api-worker"]
    denied = replace(
        worker, sandbox=replace(worker.sandbox, predicted_denials=(PredictedDenials("opencode", (path,)),))
    )
    shown = text(inheritance(denied, [denied], 100, LOOK))
    assert "opencode  /home/dev/.local/share/opencode (sessions database, needed)" in shown
    assert "would deny" not in text(inheritance(BY_NAME["Pasteur"], [], 100, LOOK))


def test_policy_that_drifts_from_the_parents_is_marked():
    drift = DifferingField(
        LayerField.NETWORK, expected="on", actual="off", layer="configured", reference="parent"
    )
    worker = BY_NAME["api-worker"]
    finding = replace(sample_fleet.LOOSER, fields=(drift,))
    drifted = replace(worker, sandbox=replace(worker.sandbox, findings=(finding,)))
    tones = [
        span.tone
        for each in (worker, drifted)
        for span in inheritance(each, [each], 60, LOOK)[1]
        if "workspace/off" in span.text
    ]
    assert tones == ["", "mismatch"]
