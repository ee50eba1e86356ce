"""Limits and intervals that several modules share; each is defined here, once, with its unit and its
reason."""

from __future__ import annotations

from typing import Final

MAX_LINE_BYTES: Final = 32 << 20
"""Longest line that is parsed, of a rollout or a journal. Codex inlines images into lines of several MB; a
line that is longer than this is counted as skipped, so that one damaged file cannot exhaust memory."""
SKIM_ABOVE_BYTES: Final = 1 << 17
"""Size above which only the head and the tail of a rollout are read at first: the head holds the metadata and
the first prompt, the tail the newest turn, and reading more would delay the first snapshot."""
READ_BLOCK_BYTES: Final = 1 << 20
"""Size of one read of a large file: big enough to amortize the system call."""
STALLED_AFTER_S: Final = 120.0
"""Silence (no output, CPU or I/O) after which a running worker counts as stalled, unless configured: longer
than a model request usually takes to produce its first token."""
REPLAY_SPEEDS: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Recorded seconds per real second; at infinity every step is drawn and no time passes between two."""
MAX_CALLS: Final = 100
"""Calls kept of a thread, ended ones and open ones each: more than a panel shows, and a bound for
threads that run for weeks."""
MAX_MOMENTS: Final = 200
"""Timeline entries kept of a thread."""
MAX_INDENT: Final = 12
"""Levels by which the rows of a tree are indented: files may name chains of thousands of parents."""
MIN_PREFIX_CHARS: Final = 4
"""Of the shortest beginning of a thread's id that names it: ids begin with the time, so shorter ones match by
accident."""
