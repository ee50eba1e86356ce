"""Usage limits that real CLIs write down: until the reset, and after it."""

from __future__ import annotations

import time

from agentdash.config import Config
from agentdash.model.states import Group, State
from agentdash.model.usage_limits import usage_limits
from agentdash.model.worker import Worker
from tests.live.claude import ClaudeLab, install
from tests.live.conftest import OpenLab
from tests.live.patience import scaled
from tests.live.watched import watching, watching_config

REJECTED = "This request would exceed your account's rate limit."


async def test_codex_stopped_by_a_limit_needs_you_after_the_reset(codex: OpenLab) -> None:
    resets_at = int(time.time() + scaled(15))
    window = {
        "x-codex-primary-used-percent": "82.5",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": str(resets_at),
    }
    refused = {"error": {"type": "usage_limit_reached", "message": REJECTED, "resets_at": resets_at}}
    lab = codex(
        {
            "limit": [
                {"run": "true", "headers": window},
                {"hold": "limit"},
                {"fail": 429, "body": refused, "headers": window | {"x-codex-primary-used-percent": "100"}},
            ]
        }
    )
    async with watching(lab) as watched:
        lab.exec("[[limit]] go")
        before = await watched.until_snapshot(lambda each: bool(usage_limits(each.workers, each.at)))
        (limit,) = usage_limits(before.workers, before.at)
        assert (limit.agent, limit.home, limit.span) == ("codex", str(lab.home), "5h")
        assert (limit.window.used, limit.window.resets_at) == (82.5, resets_at)

        lab.model.release("limit")
        limited = await watched.until(lambda each: each.limited_until is not None)
        assert (limited.state, limited.group, limited.limited_until) == (
            State.FAILED_PROVIDER,
            Group.DONE,
            resets_at,
        )
        assert limited.fact.text.startswith("limited until ")

        late = await watched.until(lambda each: each.needs_you and each.kind == "codex-thread")
        assert time.time() >= resets_at
        assert "it still stands" in late.fact.text


async def test_claude_states_its_limit_in_its_record() -> None:
    resets_at = int(time.time()) + 3_700
    prefix = "anthropic-ratelimit-unified"
    headers = {
        f"{prefix}-status": "rejected",
        f"{prefix}-reset": str(resets_at),
        f"{prefix}-representative-claim": "five_hour",
    }
    body = {"type": "error", "error": {"type": "rate_limit_error", "message": REJECTED}}
    script = {"limit": [{"run": "true"}, {"fail": 429, "headers": headers, "body": body}]}

    class Subscribed(ClaudeLab):
        @property
        def environment(self) -> dict[str, str]:
            found = super().environment | {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-fakefakefakefake"}
            del found["ANTHROPIC_API_KEY"]  # limits are those of a subscription
            return found

    def is_limited(worker: Worker) -> bool:
        return worker.limited_until == resets_at and worker.group is Group.DONE

    with Subscribed(install(), script) as lab:
        lab.print("[[limit]] go", "--allowedTools", "Bash")
        config = Config(codex_home=lab.home, claude_home=lab.config, tmux=False)
        async with watching_config(config) as watched:
            limited = await watched.until(is_limited)
            (limit,) = usage_limits([limited], time.time())
            assert (limit.agent, limit.span, limit.home) == ("claude", "5h", str(lab.config))
