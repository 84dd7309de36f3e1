# SPDX-License-Identifier: BSD-3-Clause
"""Writes report files: JSON, text, and SARIF, a format for findings of tools that code hosts can display.

Source: SARIF 2.1.0, https://docs.oasis-open.org/sarif/sarif/v2.1.0/.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from openreg_sanitizer import text
from openreg_sanitizer.finding import KINDS, Finding, Frame, Stack, shown

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class ReportError(OSError):
    """An error for a report that cannot be written, with file, reason and remedy in the message."""


def write(findings: Sequence[Finding], path: Path) -> None:
    """Writes a report in the format of the file's suffix: ``.json``, ``.sarif``, or text for any other.

    Stacks are whole. Raises :class:`ReportError` if the file cannot be written.
    """
    if path.suffix == ".json":
        content = json.dumps(to_json(findings), indent=2)
    elif path.suffix == ".sarif":
        content = json.dumps(to_sarif(findings), indent=2)
    else:
        rendered = [text.render(finding, whole_stacks=True) for finding in findings]
        content = "\n\n".join([*rendered, text.summary(findings)])
    try:
        path.write_text(content + "\n", "utf-8")
    except OSError as error:
        raise ReportError(
            f"{path}: the report cannot be written: {error.strerror or error}; name another file"
        ) from error


def to_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """Returns the findings as a JSON document."""
    return {"tool": "openreg-sanitizer", "version": version("openreg-sanitizer"), "findings": [*map(_json, findings)]}


def _json(finding: Finding) -> dict[str, Any]:
    first, second = finding.frames
    return {
        **asdict(finding),
        "severity": "warning" if finding.is_warning else "error",
        "message": KINDS[finding.kind],
        "first_line": asdict(first) if first else None,
        "second_line": asdict(second) if second else None,
    }


def to_sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    """Returns the findings as a SARIF log with one run.

    The fingerprint ``places``, which consists of kind and program lines, is equal in all logs with the same finding.
    """
    rules = [{"id": kind, "shortDescription": {"text": meaning}} for kind, meaning in KINDS.items()]
    driver = {"name": "openreg-sanitizer", "version": version("openreg-sanitizer"), "rules": rules}
    run = {"tool": {"driver": driver}, "results": [*map(_result, findings)]}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(finding: Finding) -> dict[str, Any]:
    first, second = finding.frames
    repair = f" Missing: `{finding.missing}`, {finding.where}." if finding.missing else ""
    result: dict[str, Any] = {
        "ruleId": finding.kind,
        "level": "warning" if finding.is_warning else "error",
        "message": {"text": f"{KINDS[finding.kind]}.{repair}"},
        "occurrenceCount": finding.count,
        "partialFingerprints": {"places/v1": " ".join(finding.places)},
        "locations": [_location(second)] if second else [],
        "relatedLocations": [{"id": 1, **_location(first), "message": {"text": "first access"}}] if first else [],
    }
    stacks = [("second access", finding.second.stack)]
    if finding.first is not None:
        stacks.append(("first access", finding.first.stack))
    result["stacks"] = [_stack(name, stack) for name, stack in stacks if stack]
    return result


def _location(frame: Frame) -> dict[str, Any]:
    artifact = {"uri": Path(shown(frame.file)).as_posix()}
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": max(frame.line, 1)}}}


def _stack(name: str, stack: Stack) -> dict[str, Any]:
    return {"message": {"text": name}, "frames": [{"location": _location(frame)} for frame in stack]}
