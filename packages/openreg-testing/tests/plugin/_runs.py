# SPDX-License-Identifier: BSD-3-Clause
"""Runs pytest in a process of its own, on files that a test writes, and reads its report."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

import _pythons
from _pythons import environment

GUARD = 240  # seconds, against hangs
NOTE = """
import json, os, pathlib, sys

noted, *arguments = sys.argv[1:]
pathlib.Path(noted).write_text(json.dumps([arguments, dict(os.environ), os.getcwd()]), "utf-8")
"""


@dataclass(frozen=True)
class Outcome:
    """What became of a test: passed, failed, error or skipped, with the text of its report."""

    kind: str
    message: str
    text: str
    properties: dict


@dataclass(frozen=True)
class Result:
    status: int
    output: str
    tests: dict

    def kinds(self):
        return {name: test.kind for name, test in self.tests.items()}


def command(*arguments):
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]


def write(folder, **files):
    """Writes test files: test_one=... becomes test_one.py."""
    for name, code in files.items():
        (folder / f"{name}.py").write_text(code, "utf-8")


def run(folder, *arguments, fresh=False, **variables):
    """The result of pytest in this folder; ``fresh``: in a process that has imported nothing before."""
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    arguments = ["-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={report}", *arguments]
    done = _pythons.run(*arguments, env=environment(**variables), folder=folder, timeout=GUARD, fresh=fresh)
    return Result(done.returncode, done.stdout + done.stderr, read(report) if report.exists() else {})


def in_a_new_shell(line, folder, scratch):
    """The result of a command as a reader types it, in a shell that knows nothing of the run that printed it.

    The shell finds a program that only notes how it was called, because pytest is forked from a warm interpreter.
    """
    program, noted, report = scratch / "pytest", scratch / "noted.json", scratch / "report.xml"
    (scratch / "note.py").write_text(NOTE, "utf-8")
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{scratch / "note.py"}" "{noted}" "$@"\n', "utf-8")
    program.chmod(0o755)
    of_python = {name: value for name, value in os.environ.items() if name.startswith(("LD_", "PYTHON"))}
    env = of_python | {"PATH": os.pathsep.join([str(scratch), os.environ["PATH"]]), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(["/bin/sh", "-c", line], cwd=folder, env=env, timeout=GUARD, check=True)
    arguments, env, folder = json.loads(noted.read_text("utf-8"))
    arguments = ["-m", "pytest", *arguments, "--junitxml", str(report)]
    done = _pythons.run(*arguments, env=env, folder=folder, timeout=GUARD)
    return Result(done.returncode, done.stdout + done.stderr, read(report) if report.exists() else {})


def read(report):
    """The outcomes of a JUnit report. A name that comes twice would be an error of the report."""
    tests = {}
    for case in ElementTree.parse(report).iter("testcase"):
        kind, message, text = "passed", "", ""
        for tag, name in (("failure", "failed"), ("error", "error"), ("skipped", "skipped")):
            for element in case.findall(tag):
                kind, message, text = name, element.get("message", ""), text + (element.text or "")
        for tag in ("system-out", "system-err"):
            text += "".join(element.text or "" for element in case.findall(tag))
        properties = {each.get("name"): each.get("value") for each in case.iter("property")}
        assert case.get("name") not in tests
        tests[case.get("name")] = Outcome(kind, message, text, properties)
    return tests
