# SPDX-License-Identifier: BSD-3-Clause
"""Every program of a `failure` in the guide ends with the message that the page shows."""

import html
import os
import re
from pathlib import Path

import pytest
from failures import Failure, FailureError, failures_of
from pages import name_of, pages

FAILURES = [
    pytest.param(failure, id=f"{name_of(page)}-{failure.title}-{number}")
    for page in pages()
    for number, failure in enumerate(failures_of(page.read_text("utf-8")))
]


@pytest.fixture(scope="module")
def run(run_python, tmp_path_factory):
    """Runs the program of a failure; once, where several pages show it."""
    ended = {}

    def run_failure(failure):
        options = failure.options
        key = (failure.program, options.get("before"), options.get("environment"), options.get("path"))
        if key not in ended:
            folder = tmp_path_factory.mktemp("program")
            if "before" in options:
                before = run_python(options["before"], folder, {})
                assert before.returncode == 0, before.stderr
            settings = dict(failure.environment)
            if "path" in options:
                settings["PYTHONPATH"] = str(Path(__file__).parent / options["path"])
            ended[key] = run_python(failure.program, folder, settings)
        return ended[key]

    return run_failure


@pytest.mark.parametrize("failure", FAILURES)
def test_a_program_ends_with_the_message_of_the_page(failure, run):
    if "os.fork()" in failure.program and not hasattr(os, "fork"):
        pytest.skip("this system has no fork()")
    done = run(failure)
    errors = done.stderr
    assert failure.is_said_in(errors), f"the page says\n{failure.kind}: {failure.message}\nthe process said\n{errors}"
    assert (done.returncode == 0) is failure.kind.endswith("Warning"), (done.returncode, errors)
    if "at" in failure.options:
        assert failure.raising_line(errors, "<string>") == failure.options["at"], errors
    if "prints" in failure.options:
        assert failure.options["prints"] in done.stdout


def test_there_are_many_and_each_page_was_read():
    assert len(FAILURES) >= 25
    names = [re.sub(r"-\d+$", "", item.id) for item in FAILURES]
    assert any(name.startswith("using/troubleshooting-") for name in names)


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


def test_an_environment_of_the_caller_does_not_reach_a_program(tmp_path, run_python, monkeypatch):
    monkeypatch.setitem(os.environ, "OPENREG_DEVICE_COUNT", "many")
    done = run_python("import torch; torch.openreg.init()", tmp_path, {})
    assert done.returncode == 0, done.stderr
