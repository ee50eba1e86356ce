"""Workers of other hosts: a link to each runs `agentdash status --watch` there, reads its lines, and runs it
again when it ends. No link waits for another.

A link is lost when its process ends, when nothing has arrived for `SILENCE_S`, or when what arrives is not
understood. Its lines are foreign text, sanitized and bounded by `parse_change`.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from agentdash.collect.remote.carrier import Carrier
from agentdash.collect.remote.child import ChildProcess
from agentdash.collect.tail.log_file import LineSplitter
from agentdash.documents.read_worker import read_worker
from agentdash.documents.worker import ChangeReport, TickReport, WorkerReport
from agentdash.model.decoders import JsonDecoder
from agentdash.model.events import Event, SourceSeen
from agentdash.model.fleet import Fleet, RemoteSeen
from agentdash.model.remote import HostLink, LinkState, RemoteHost
from agentdash.model.sanitize import MAX_LINE_CHARS, clean_block, clean_line
from agentdash.model.source import NOTHING_TO_READ, Clock, Emit, FleetChannel
from agentdash.model.worker import Worker

HEARTBEAT_S: Final = 4.0
"""Between two lines of a host on which nothing changes."""
SILENCE_S: Final = 11.0
"""Silence after which a link is lost: two heartbeats and some load."""
START_LIMIT_S: Final = 20.0
"""For the first complete news: ssh, and the start of agentdash there."""
_RETRY_DELAYS_S: Final = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Before a link is made again; the last one repeats."""
_STABLE_AFTER_S: Final = 60.0
"""A link that lasted so long is made again at once, as if it were the first."""
_MAX_WORKERS: Final = 2_000
"""Workers kept of one host."""
_MAX_BYTES: Final = 32 << 20
"""Lines of workers kept of one host, as they arrived: bounds its memory."""
_READ_BYTES: Final = 1 << 16
ARGUMENTS: Final = f"status --watch --json --no-hosts --heartbeat {HEARTBEAT_S:g}"


class Link:
    """The link to one host.

    Args:
        clock: the time of this machine.
        changed: called after each change of `host`.
    """

    def __init__(self, carrier: Carrier, clock: Clock, changed: Callable[[RemoteHost], None]) -> None:
        self._carrier = carrier
        self._clock = clock
        self._changed = changed
        self.host = RemoteHost(HostLink(carrier.name, LinkState.CONNECTING, clock.now()))
        self.decided = asyncio.Event()
        """Set while the link is connected, or lost."""
        self._reader = _ChangeReader()
        self._news_at: float | None = None

    async def run(self) -> None:
        """Keep the link until cancelled."""
        failures = 0
        while True:
            began = time.monotonic()
            detail = await self._follow()
            lasted = time.monotonic() - began
            failures = 0 if lasted >= _STABLE_AFTER_S else failures
            delay = _RETRY_DELAYS_S[min(failures, len(_RETRY_DELAYS_S) - 1)]
            failures += 1
            self._lose(detail)
            await asyncio.sleep(delay)

    # ------------------------------------------------------------ one connection

    async def _follow(self) -> str:
        """Run the command there once and read its lines; return why it ended."""
        self._reader = _ChangeReader()
        argv = self._carrier.argv(ARGUMENTS)
        try:
            process = await ChildProcess.start(argv)
        except OSError as error:
            return clean_line(f"{argv[0]}: {error.strerror or error}")
        try:
            detail = await self._read_lines(process)
            if detail is not None:
                return detail
            code = await process.wait()
            return _end_detail(self._carrier, code, process.last_error, self._reader.first_invalid)
        finally:
            await process.stop()

    async def _read_lines(self, process: ChildProcess) -> str | None:
        """Read lines until they end, and return None; or why the connection is to be closed."""
        splitter = LineSplitter(MAX_LINE_BYTES)
        began = heard_at = time.monotonic()
        while True:
            is_complete, now = self._reader.is_complete, time.monotonic()
            ends = heard_at + SILENCE_S if is_complete else began + START_LIMIT_S
            if now >= ends and is_complete:
                return f"nothing received for {SILENCE_S:g} s"
            if now >= ends:
                return f"no answer within {START_LIMIT_S:g} s{self._reader.hint()}"
            try:
                async with asyncio.timeout(ends - now):
                    data = await process.stdout.read(_READ_BYTES)
            except TimeoutError:
                continue
            if not data:
                return None
            try:
                is_news = self._reader.add(splitter, data)
            except SchemaError as error:
                return str(error)
            if is_news:
                heard_at = time.monotonic()
                self._news_at = self._clock.now()
                if self._reader.is_complete:
                    self._show_connected()

    # ------------------------------------------------------------ what is shown

    def _show_connected(self) -> None:
        before, reader = self.host.link, self._reader
        link = HostLink(
            name=before.name,
            state=LinkState.CONNECTED,
            at=before.at if before.state is LinkState.CONNECTED else self._clock.now(),
            detail=reader.detail,
            version=reader.version,
        )
        if link == before and not reader.has_changed:
            return
        reader.has_changed = False
        failed_sources = tuple(sorted(reader.failed_sources.items()))
        self._show(RemoteHost(link, reader.rows(before.name), failed_sources))

    def _lose(self, detail: str) -> None:
        before = self.host.link
        if before.state is LinkState.LOST and before.detail == detail:
            return
        at = before.at if before.state is LinkState.LOST else self._clock.now()
        link = replace(before, state=LinkState.LOST, at=at, detail=detail, news_at=self._news_at)
        self._show(replace(self.host, link=link))

    def _show(self, host: RemoteHost) -> None:
        self.host = host
        self.decided.set()
        self._changed(host)


class _ChangeReader:
    """What the lines of one connection state."""

    def __init__(self) -> None:
        self.workers: dict[str, WorkerReport] = {}
        self.failed_sources: dict[str, str] = {}
        self.version: str | None = None
        self.is_complete = False
        """Whether all workers were received."""
        self.has_changed = True
        """Whether workers or sources have changed since this was reset."""
        self.first_invalid: str | None = None
        """The first line that is not a document."""
        self._rows: dict[str, Worker] = {}
        """Of the workers that have not changed since `rows`."""
        self._sizes: dict[str, int] = {}
        self._bytes = 0
        self._invalid = 0
        self._left_out = 0

    @property
    def detail(self) -> str:
        """Return what was not understood or left out, in words, or an empty text."""
        parts = [f"{self._invalid} lines not understood{self.hint()}"] if self._invalid else []
        parts += [f"{self._left_out} workers left out"] if self._left_out else []
        return ", ".join(parts)

    def hint(self) -> str:
        """Return the first line that is not a document, as the end of a message."""
        return f" (first {self.first_invalid!r})" if self.first_invalid else ""

    def add(self, splitter: LineSplitter, data: bytes) -> bool:
        """Read the lines that `data` completes; return whether there was a document.

        Raises:
            SchemaError: a line has another schema.
        """
        is_news = False
        for skipped, _, lines in splitter.add(data):
            if skipped:
                self._count_invalid(f"a line of more than {MAX_LINE_BYTES >> 20} MB")
            for line in lines:
                if line and self._add_line(line):
                    is_news = True
        return is_news

    def rows(self, host: str) -> dict[str, Worker]:
        """Return the rows of the workers by their id there, read again only if something has changed."""
        for each in self.workers.keys() - self._rows.keys():
            self._rows[each] = read_worker(self.workers[each], host)
        return {each: self._rows[each] for each in self.workers}

    def _add_line(self, line: bytes) -> bool:
        try:
            change = parse_change(line)
        except ValueError:
            self._count_invalid(clean_line(line[:200].decode("utf-8", "replace"), 80))
            return False
        match change.change:
            case "alive":
                self.version = change.version
                self.is_complete = True
                for tick in change.ticks:
                    self._grow(tick)
            case "removed" if change.worker is not None:
                self._remove(change.worker.id)
            case "added" | "changed" if change.worker is not None:
                self._keep(change.worker, len(line))
            case "source" if change.source is not None:
                self.has_changed = True
                self.failed_sources.pop(change.source.name, None)
                if not change.source.ok and len(self.failed_sources) < _MAX_WORKERS:
                    self.failed_sources[change.source.name] = change.source.detail
            case _:
                self._count_invalid(f"a change of kind {clean_line(change.change, 40)!r}")
        return True

    def _keep(self, worker: WorkerReport, size: int) -> None:
        self._remove(worker.id)
        is_full = len(self.workers) >= _MAX_WORKERS or self._bytes + size > _MAX_BYTES
        if is_full or worker.host is not None:
            self._left_out += 1
            return
        self.workers[worker.id] = worker
        self._sizes[worker.id] = size
        self._bytes += size

    def _grow(self, tick: TickReport) -> None:
        if (worker := self.workers.get(tick.id)) is not None:
            self.has_changed = True
            self._rows.pop(tick.id, None)
            self.workers[tick.id] = replace(worker, last_activity=tick.last_activity, tokens=tick.tokens)

    def _remove(self, worker: str) -> None:
        self.has_changed = True
        self._rows.pop(worker, None)
        if self.workers.pop(worker, None) is not None:
            self._bytes -= self._sizes.pop(worker)

    def _count_invalid(self, text: str) -> None:
        self._invalid += 1
        self.first_invalid = self.first_invalid or text


def _end_detail(carrier: Carrier, code: int, error: str, invalid: str | None) -> str:
    """Return why the command there has ended."""
    if "No such option" in error and ("--heartbeat" in error or "--no-hosts" in error):
        return "the agentdash there is too old for this one: update it there"
    if code == 127 or "not found" in error:
        return f"no agentdash there ({error or 'exit code 127'}): install it there"
    said = error or (f"it wrote {invalid!r}" if invalid else "no message")
    return f"{carrier.before[0]} ended with exit code {code}: {said}" if code else f"it ended: {said}"


class RemoteSource:
    """Watches other hosts.

    Args:
        clock: the time of this machine.
    """

    name = "hosts"

    def __init__(self, carriers: Sequence[Carrier], clock: Clock) -> None:
        self._clock = clock
        self._carriers = carriers
        self._names = {each.name: each.source for each in carriers}
        self._links: list[Link] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._emit: Emit | None = None

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return the workers of every host; of one that does not answer in time that it does not.

        The links stay for `stream`, or until `close`.
        """
        del fleet
        self._start()
        waiting = [asyncio.ensure_future(link.decided.wait()) for link in self._links]
        try:
            await asyncio.wait(waiting, timeout=START_LIMIT_S + 1)
        finally:
            for each in waiting:
                each.cancel()
        return [event for link in self._links for event in self._events(link.host)]

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit each host as it changes."""
        del channel
        self._emit = emit
        self._start()
        for link in self._links:
            emit(self._events(link.host))
        try:
            await asyncio.gather(*self._tasks)
        finally:
            self._emit = None
            await self.close()

    def _start(self) -> None:
        if not self._tasks:
            self._links = [Link(carrier, self._clock, self._changed) for carrier in self._carriers]
            self._tasks = [
                asyncio.create_task(link.run(), name=f"host {link.host.link.name}") for link in self._links
            ]

    async def close(self) -> None:
        """End the links."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _changed(self, host: RemoteHost) -> None:
        if self._emit is not None:
            self._emit(self._events(host))

    def _events(self, host: RemoteHost) -> list[Event]:
        now, link = self._clock.now(), host.link
        failed = [
            f"{name}: {detail}"
            for name, detail in host.failed_sources
            if not detail.endswith(NOTHING_TO_READ)
        ]
        is_well = link.state is LinkState.CONNECTED and not link.detail and not failed
        detail = "; ".join(part for part in (link.detail, *failed) if part)
        shown = detail or f"{len(host.workers)} workers, agentdash {link.version or '?'}"
        if link.state is LinkState.CONNECTING:
            shown = "connecting"
        health = SourceSeen(at=now, name=self._names[link.name], ok=is_well, detail=shown)
        return [RemoteSeen(at=now, host=host), health]


SCHEMA: Final = "agentdash.change/2"
"""The only schema that is understood."""
MAX_LINE_BYTES: Final = 1 << 20
"""Longest line that is parsed: workers with a full ledger of denials take some 100 kB."""
_MAX_ITEMS: Final = 2_000
"""Entries of one list of a change that are kept."""
_MAX_NUMBER: Final = 1 << 53
"""Counts are smaller."""
_MAX_BLOCK_CHARS: Final = 8_000
"""Characters kept of a text of several lines."""
_BLOCKS: Final = frozenset(("remedy", "quote", "object", "text"))
"""Fields that may have several lines."""
_SCHEMA: Final = re.compile(r"agentdash\.change/(\d{1,6})", re.ASCII)
_T = TypeVar("_T", bound=msgspec.Struct)


class SchemaError(Exception):
    """The agentdash there writes another schema. The message is one line, with what to do."""


class _Head(msgspec.Struct):
    schema: str


_decoder: Final = JsonDecoder(ChangeReport)
_heads: Final = JsonDecoder(_Head)


def parse_change(line: bytes) -> ChangeReport:
    """Return the document of one line.

    Raises:
        ValueError: it is not a document.
        SchemaError: it has another schema.
    """
    try:
        _check_schema(_heads.decode(line).schema)
        change = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(clean_line(str(error))) from error
    if change.worker is not None and not change.worker.id:
        raise ValueError("a worker without an id")
    return _cleaned_struct(change)


def _check_schema(schema: str) -> None:
    if schema == SCHEMA:
        return
    known = _SCHEMA.fullmatch(schema)
    if known is None:
        raise ValueError(f"a document of schema {clean_line(schema, 60)!r}")
    where = "here" if int(known[1]) > 1 else "there"
    raise SchemaError(f"agentdash there writes {known[0]}, and this one reads {SCHEMA}: update it {where}")


def _cleaned_struct(value: _T) -> _T:
    """Return a struct with its texts sanitized, its numbers bounded, and its lists cut."""
    changes = {
        name: cleaned
        for name in value.__struct_fields__
        if (cleaned := _cleaned(old := getattr(value, name), is_block=name in _BLOCKS)) is not old
    }
    return msgspec.structs.replace(value, **changes) if changes else value


def _cleaned(value: Any, *, is_block: bool = False) -> Any:
    match value:
        case str():
            if value.isascii() and value.isprintable() and len(value) <= MAX_LINE_CHARS:
                return value
            return clean_block(value, _MAX_BLOCK_CHARS) if is_block else clean_line(value)
        case bool() | float() | None:
            return value
        case int():
            return max(-_MAX_NUMBER, min(value, _MAX_NUMBER))
        case list():
            return [_cleaned(item) for item in value[:_MAX_ITEMS]]
        case dict():
            return {clean_line(str(key)): _cleaned(item) for key, item in value.items()}
        case _:
            return _cleaned_struct(value)
