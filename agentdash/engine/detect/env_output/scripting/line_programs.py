"""Programs that are run for each line of their input, as by `-n` of Perl and Ruby."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from agentdash.engine.detect.env_output.dump_maps import mapped, mapped_lines
from agentdash.engine.detect.env_output.inputs import lines_of, single_dump
from agentdash.engine.detect.env_output.patterns import Parts, joined
from agentdash.engine.detect.env_output.scripting.texts import Texts
from agentdash.engine.detect.env_output.unknown import UnknownError


class LinePrograms(Texts):
    """Programs that are run for each line of their input."""

    ends_lines = False
    """Lines are read without their end, which each `print` adds (`-l`)."""
    record_end = "\n"

    def changed_lines(self, content: Parts, run: Callable[[str], None]) -> Parts:
        """Return what the program makes of each line of its input, if none depends on those before it."""
        before = self._state()

        def change(line: str) -> str | None:
            outer, self.out = self.out, []
            try:
                run(line if self.ends_lines else line + self.record_end)
                if not all(isinstance(part, str) for part in self.out) or self._state() != before:
                    raise UnknownError
                text = "".join(str(part) for part in self.out)
            finally:
                self.out = outer
            if text and not text.endswith("\n"):
                raise UnknownError
            return text[:-1] if text else None

        dump = single_dump(content)
        if dump is not None and dump.nul is (self.record_end == "\0"):
            return mapped(msgspec.structs.replace(dump, nul=False), change)
        lines = lines_of(content)
        if lines is None or self.record_end == "\0":
            raise UnknownError
        return joined(mapped_lines(lines, change))

    def _state(self) -> dict[str, Any]:
        """Return the variables that a line can leave to those behind it."""
        return {
            name: list(value)
            if isinstance(value, list)
            else dict(value)
            if isinstance(value, dict)
            else value
            for name, value in self._names.items()
            if name not in ("$_", "@F") and not name[1:].isdecimal()
        }
