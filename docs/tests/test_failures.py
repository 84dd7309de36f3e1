# SPDX-License-Identifier: BSD-3-Clause
"""Every program of a `failure` in the guide ends with the message that the page shows."""

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from driver._platform import HAS_FORK
from failures import Failure, FailureError, failures_of
from fresh_process import clean_environment
from pages import name_of, pages

AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
FAILURES = [
    pytest.param(failure, id=f"{name_of(page)}-{failure.title}-{number}")
    for page in pages()
    for number, failure in enumerate(failures_of(page.read_text("utf-8")))
]


def run_in_own_process(failure, folder):
    """Where the message comes from `import torch`, which the shared process has behind it."""
    environment = {**clean_environment(), **failure.environment}
    environment.pop(AUTOLOAD)
    if "path" in failure.options:
        environment["PYTHONPATH"] = str(Path(__file__).parent / failure.options["path"])
    result = subprocess.run(
        [sys.executable, "-B", "-c", failure.program],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return result.returncode, result.stdout, result.stderr


def run_in_child(failure, folder, processes):
    """In a child of a process that has imported torch, and nothing else."""
    start = [f"import os; os.chdir({str(folder)!r})"]
    if failure.environment.get(AUTOLOAD) != "0":
        start.append("import openreg_autoload; openreg_autoload.autoload()")
    # The program keeps its own line numbers.
    start.append(f"exec(compile({failure.program!r}, 'program.py', 'exec'), {{'__name__': '__main__'}})")
    outcome = processes.run("\n".join(start), env=failure.environment)
    return outcome.code, outcome.output, outcome.errors


@pytest.mark.parametrize("failure", FAILURES)
def test_a_program_ends_with_the_message_of_the_page(failure, tmp_path, processes):
    if "os.fork()" in failure.program and not HAS_FORK:
        pytest.skip("this system has no fork()")
    if "before" in failure.options:
        before = Failure("", "", failure.options["before"], "")
        code, _, errors = run_in_child(before, tmp_path, processes)
        assert code == 0, errors
    if "own-process" in failure.options:
        code, output, errors = run_in_own_process(failure, tmp_path)
    else:
        code, output, errors = run_in_child(failure, tmp_path, processes)
    assert failure.is_said_in(errors), f"the page says\n{failure.kind}: {failure.message}\nthe process said\n{errors}"
    assert (code == 0) is failure.kind.endswith("Warning"), (code, errors)
    if "at" in failure.options:
        assert failure.raising_line(errors, "program.py") == failure.options["at"], errors
    if "prints" in failure.options:
        assert failure.options["prints"] in output


def test_there_are_many_and_each_page_was_read():
    assert len(FAILURES) >= 25
    names = [re.sub(r"-\d+$", "", item.id) for item in FAILURES]
    assert any(name.startswith("troubleshooting-") for name in names)


MESSAGE = "the size 12\nis not accepted; give ...\nor less"


def say(text, kind="ValueError", message=MESSAGE):
    return Failure("", kind, "x", message).is_said_in(text)


def test_a_message_is_compared_from_beginning_to_end():
    told = "Traceback (most recent call last):\nValueError: the size 12 is not accepted; give 8 or less\n"
    assert say(told)
    assert say(told + "\nThe above exception was the direct cause of the following exception:\n\nmore")
    assert not say(told.replace("size", "length"))
    assert not say(told.replace("or less\n", "or less, please\n"))
    assert not say(told.replace("ValueError", "TypeError"))
    assert not say("")


def test_the_line_that_raises_is_the_last_one_of_the_traceback():
    failure = Failure("", "E", "import torch\nf()\ng()", "m")
    assert (
        failure.raising_line('File "program.py", line 2, in f\nFile "program.py", line 3\nE: m', "program.py") == "g()"
    )
    assert failure.raising_line("E: m", "program.py") == ""


PAGE = """# Title

## A symptom

```{{failure}} ValueError
:environment: A=1 B=2
import torch
{separator}
what it says
```
"""
GOOD_PAGE = PAGE.format(separator="---")


def test_a_page_gives_its_failures_with_their_headings():
    (failure,) = failures_of(GOOD_PAGE)
    assert failure == Failure("A symptom", "ValueError", "import torch", "what it says", {"environment": "A=1 B=2"})
    assert failure.environment == {"A": "1", "B": "2"}
    assert failure.command() == "A=1 B=2 python program.py"


@pytest.mark.parametrize(
    "page",
    [PAGE.format(separator=""), GOOD_PAGE.replace("environment", "settings"), GOOD_PAGE.replace(" ValueError", "")],
    ids=["no message", "an option that does not exist", "no kind"],
)
def test_a_failure_that_is_not_complete_is_refused(page):
    with pytest.raises(FailureError):
        list(failures_of(page))


def test_the_directive_shows_program_command_and_message(page):
    shown, warnings = page(GOOD_PAGE)
    assert warnings == ""
    text = html.unescape(re.sub("<[^>]+>", "", shown))
    assert "import torch" in text
    assert "A=1 B=2 python program.py" in text
    assert "ValueError: what it says" in text


def test_the_directive_refuses_what_is_not_complete(page):
    _, warnings = page(PAGE.format(separator=""))
    assert "write the program, a line ---, and the message" in warnings


def test_an_environment_of_the_caller_does_not_reach_a_program(tmp_path, processes, monkeypatch):
    monkeypatch.setitem(os.environ, "OPENREG_DEVICE_COUNT", "many")
    failure = Failure("", "RuntimeError", "import torch; torch.openreg.init()", "")
    code, _, errors = run_in_child(failure, tmp_path, processes)
    assert code == 0, errors
