"""What PHP writes of values: JSON, `var_dump`, `print_r`, `var_export`."""

from __future__ import annotations

from typing import Any, Final

from agentdash.engine.detect.env_output.dumps import Dump, Style
from agentdash.engine.detect.env_output.patterns import Choice, Kind, Part
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.scripting.json_text import Layout, json_text
from agentdash.engine.detect.env_output.scripting.texts import Texts
from agentdash.engine.detect.env_output.scripting.variables import Instance
from agentdash.engine.detect.env_output.selections import Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError

_PRETTY: Final = 128
_FORCES_OBJECT: Final = 16
_SLASHES: Final = 64


class Output(Texts):
    """What PHP writes of values: JSON, `var_dump`, `print_r`, `var_export`."""

    def _json(self, value: Any, flags: Any) -> str:
        if not isinstance(flags, int) or flags & ~(_PRETTY | _FORCES_OBJECT | _SLASHES | 256 | 4_194_304):
            raise UnknownError
        pretty = bool(flags & _PRETTY)
        value = value.attributes if isinstance(value, Instance) else value
        empty = "{}" if flags & _FORCES_OBJECT else "[]"
        layout = Layout(
            indent=4 if pretty else 0,
            colon=": " if pretty else ":",
            empty_map=empty,
            empty_list=empty,
            empty_selection="[]",
        )
        return json_text(self, value, layout)

    def _dumped(self, value: Any, blanks: str) -> list[Part]:
        """Return what `var_dump` writes."""
        match value:
            case None:
                return [f"{blanks}NULL\n"]
            case bool():
                return [f"{blanks}bool({str(value).lower()})\n"]
            case int():
                return [f"{blanks}int({value})\n"]
            case str():
                if self.kind_of(value) is Kind.ANY:
                    raise UnknownError
                size = self.number_word() if has_placeholder(value) else str(len(value.encode()))
                return [f'{blanks}string({size}) "{value}"\n']
            case list() | dict():
                pairs = value.items() if isinstance(value, dict) else enumerate(value)
                parts: list[Part] = [f"{blanks}array({len(value)}) {{\n"]
                for key, inner in pairs:
                    parts.append(
                        f"{blanks}  [{key}]=>\n" if isinstance(key, int) else f'{blanks}  ["{key}"]=>\n'
                    )
                    parts += self._dumped(inner, blanks + "  ")
                return [*parts, f"{blanks}}}\n"]
            case _:
                raise UnknownError

    def _readable(self, value: Any) -> list[Part]:
        """Return what `print_r` writes."""
        match value:
            case Selection(form=Form.MAPPING):
                style = Style(prefixes=("    [NAME] => ",))
                lines = Dump(shown=self.shown(value.kept), style=style)
                return ["Array\n(\n", lines, ")\n"]
            case list() | dict():
                pairs = value.items() if isinstance(value, dict) else enumerate(value)
                if any(isinstance(inner, list | dict | Selection | Lines) for _, inner in pairs):
                    raise UnknownError
                pairs = value.items() if isinstance(value, dict) else enumerate(value)
                entries = "".join(f"    [{key}] => {self.text(inner)}\n" for key, inner in pairs)
                return [f"Array\n(\n{entries})\n"]
            case _:
                return [self.text(value)]

    def _exported(self, value: Any) -> str:
        """Return what `var_export` gives."""
        match value:
            case None:
                return "NULL"
            case str():
                if self.kind_of(value) is Kind.ANY:
                    return self.word(Choice((("'", value, "'"), ("false",))))
                if not has_placeholder(value) and ("'" in value or "\\" in value):
                    raise UnknownError
                return f"'{value}'"
            case bool():
                return str(value).lower()
            case int():
                return str(value)
            case _:
                raise UnknownError
