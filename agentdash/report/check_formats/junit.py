"""Results of an audit as JUnit XML, which CI systems show as tests: one test case for each thread."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from agentdash.model.secrets import mask_secrets
from agentdash.report.check import CheckReport, ThreadReport
from agentdash.report.check_formats.places import path_in
from agentdash.report.check_formats.results import RESULT_KINDS, UNVERIFIED, Result

_NO_XML_CHARACTERS: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot contain, not even escaped."""


def junit(report: CheckReport, judged: Sequence[Result], cwd: Path) -> str:
    """Return the document.

    A thread with a failing result is a failure, one that cannot be read an error, and one of which nothing
    was observed is skipped: it neither passes nor fails.
    """
    suite = ET.Element("testsuite", name="agentdash check")
    of_thread: dict[int, list[Result]] = {}
    for result in judged:
        of_thread.setdefault(id(result.thread), []).append(result)
    for thread in report.threads:
        suite.append(_case(thread, of_thread.get(id(thread), []), cwd))
    for directory in report.unreadable_directories:
        case = ET.SubElement(suite, "testcase", _attributes(path_in(cwd, directory.path), "agentdash"))
        _element(case, "error", type="unreadable", message=str(directory))
    counts = {
        "tests": len(suite),
        "failures": len(suite.findall("testcase/failure")),
        "errors": len(suite.findall("testcase/error")),
    }
    for name, count in counts.items():
        suite.set(name, str(count))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    suites = ET.Element("testsuites", {name: suite.attrib[name] for name in ("name", *counts)})
    suites.append(suite)
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, encoding="unicode")


def _case(thread: ThreadReport, judged: Iterable[Result], cwd: Path) -> ET.Element:
    name = f"{path_in(cwd, thread.file)} ({thread.id})"
    case = ET.Element("testcase", _attributes(name, f"agentdash.{thread.agent}"))
    if thread.problem is not None:
        _element(case, "error", type="unreadable", message=f"cannot be read: {thread.problem}")
    failing = [result for result in judged if result.is_failing]
    others = [result for result in judged if not result.is_failing]
    if failing:
        kinds = ", ".join(dict.fromkeys(result.kind for result in failing))
        failure = _element(case, "failure", type=kinds, message=failing[0].message)
        failure.text = "\n\n".join(map(_text, failing))
    elif thread.verdict == UNVERIFIED and thread.problem is None:
        _element(case, "skipped", message=f"{UNVERIFIED}: {RESULT_KINDS[UNVERIFIED]}")
    if others:
        _element(case, "system-out").text = "\n\n".join(map(_text, others))
    return case


def _attributes(name: str, classname: str) -> dict[str, str]:
    return {"name": _clean(name), "classname": _clean(classname)}


def _text(result: Result) -> str:
    known = " (known by the baseline)" if result.is_known else ""
    lines = (f"{result.kind}{known}: {result.message}", *result.details)
    return _clean("\n".join(lines))


def _element(parent: ET.Element, tag: str, **attributes: str) -> ET.Element:
    return ET.SubElement(parent, tag, {key: _clean(value) for key, value in attributes.items()})


def _clean(text: str) -> str:
    return _NO_XML_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", mask_secrets(text))
