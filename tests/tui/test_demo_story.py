"""The demo tells who needs you, whose sandbox is wrong, and what to do; then it says that it has ended."""

from agentdash.demo.day import demo_hub, demo_scenes
from agentdash.engine.user_attention import UserAttention
from agentdash.model.findings import FindingKind
from agentdash.model.states import State
from agentdash.tui.app import DemoApp
from agentdash.tui.fleet.rows import Order, arrange
from agentdash.tui.options import Options
from agentdash.tui.theme import UNICODE
from agentdash.tui.worker.overview import remedies
from tests import demo_day

from .rendering import screen_text


def demo(at):
    hub, clock = demo_hub(at=at)
    user = UserAttention(hub, clock)
    return hub, clock, DemoApp(hub, clock, demo_scenes(), options=Options(banner="DEMO"), attention=user)


def test_the_first_minute_has_every_state_and_every_kind_of_finding():
    workers = [worker for snapshot in demo_day.snapshots()[:61] for worker in snapshot.workers]
    assert {worker.state for worker in workers} == set(State)
    assert {finding.kind for worker in workers for finding in worker.sandbox.findings} == set(FindingKind)


def test_for_half_a_minute_the_first_worker_has_a_pane_a_finding_and_a_remedy():
    for snapshot in demo_day.snapshots()[1:30:4]:
        first = arrange(snapshot.workers, Order(), UNICODE.tree)[0]
        worker = next(each for each in snapshot.workers if each.id == first.id)
        assert worker.name.startswith("Run the smoke check")
        assert worker.needs_you
        assert worker.pane.window == "1:smoke"
        assert "denied-filesystem" in {finding.kind for finding in worker.sandbox.findings}
        assert remedies(worker)[0].startswith("codex -c")
        assert any("kanban" in line for line in worker.pane.screen)


async def test_each_scene_has_its_caption_and_can_be_paused():
    begin = demo_scenes()[0][0]
    for at, says in demo_scenes():
        hub, clock, app = demo(at - begin + 1)
        async with app.run_test(size=(120, 36)) as pilot:
            app.run_worker(hub.run())
            await pilot.pause()
            assert says in screen_text(app)
            await pilot.press("space")
            assert clock.paused
