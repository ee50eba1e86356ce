"""Structs that several documents share, and their conversion from the model."""

from __future__ import annotations

import os
from typing import Literal

import msgspec

from agentdash.model.fact import Fact
from agentdash.model.fleet import SourceHealth
from agentdash.model.git import Repository
from agentdash.model.remote import HostLink
from agentdash.model.sanitize import clean_line
from agentdash.model.times import iso


class SourceReport(msgspec.Struct):
    """Health of one source."""

    name: str
    ok: bool
    detail: str


def source_report(source: SourceHealth) -> SourceReport:
    """Return the report of a source."""
    return SourceReport(source.name, source.ok, source.detail)


class ViaReport(msgspec.Struct):
    """The status file that was read instead of live sources, because agentdash ran inside of a sandbox."""

    file: str
    age_seconds: float | None
    """Null if the file does not exist."""
    pid: int | None
    """Process that wrote it."""
    problem: str | None
    """Why it could not be used, and what to do; null if it was used."""


class AgentReport(msgspec.Struct):
    """The CLI that a worker runs."""

    name: str
    version: str | None


class FactReport(msgspec.Struct):
    """What a worker does or needs, and the object it is about."""

    kind: str
    """`run`, `leave`, `edit`, `approve`, `ask`, `idle`, `denied`, `refused`, `provider`, `sandbox`, `work`,
    `done`, `stopped`, `crashed`, `quit`, `unclear`."""
    what: str
    """In a few words, before the object."""
    object: str
    """The command, path, host, question or message, whole; empty if there is none."""
    form: str
    """What the object is: `command`, `path`, `host`, `text`."""
    why: str
    """In a few words, after the object; empty if nothing more is known."""
    text: str
    """All of it on one line."""


def fact_report(fact: Fact) -> FactReport:
    """Return the report of a fact."""
    return FactReport(
        kind=fact.kind, what=fact.what, object=fact.object, form=fact.form, why=fact.why, text=fact.text
    )


class RepositoryReport(msgspec.Struct):
    """The git repository of a worker's directory; null where a part is not known."""

    root: str
    """The working tree."""
    branch: str | None
    """Null also where HEAD is detached."""
    commit: str | None
    """The commit that is checked out."""
    worktree: str | None
    """Its name, if it is a linked worktree."""
    dirty: bool | None
    """Whether tracked files differ from the last commit."""
    upstream: str | None
    """The branch that it follows, `origin/main`."""
    ahead: int | None
    """Commits that the upstream has not."""
    behind: int | None
    """Commits of the upstream that it has not."""


def repository_report(repository: Repository) -> RepositoryReport:
    """Return the report of a repository."""
    return RepositoryReport(
        root=repository.root,
        branch=repository.branch,
        commit=repository.commit,
        worktree=repository.worktree,
        dirty=repository.dirty,
        upstream=repository.upstream,
        ahead=repository.ahead,
        behind=repository.behind,
    )


class UnreadableReport(msgspec.Struct):
    """A directory or file that could not be read, so that nothing is known of what is in it."""

    path: str
    problem: str

    def __str__(self) -> str:
        return f"{self.path} cannot be read: {self.problem}"


def unreadable(error: OSError) -> UnreadableReport:
    """Return the report of an error that has a `filename`."""
    path = "?" if error.filename is None else os.fsdecode(error.filename)
    return UnreadableReport(path=clean_line(path), problem=clean_line(error.strerror or str(error)))


class HostReport(msgspec.Struct):
    """Another host that is watched, and the link to it."""

    name: str
    state: Literal["connecting", "connected", "lost"]
    """The state of the link."""
    since: str | None
    """Since when the link has been in that state: ISO 8601, UTC."""
    detail: str
    """Why it was lost; what the agentdash there could not read."""
    version: str | None
    """Of the agentdash there; null: not known yet."""
    last_news: str | None
    """Of a lost link: when something was last received; null: never, or it is not lost."""
    clock_offset_seconds: float
    """Added to the times of that host; 0 below one second."""


def host_report(link: HostLink) -> HostReport:
    """Return the report of the link to a host."""
    return HostReport(
        name=link.name,
        state=link.state.value,
        since=iso(link.at),
        detail=link.detail,
        version=link.version,
        last_news=iso(link.news_at),
        clock_offset_seconds=round(link.clock_offset, 3),
    )
