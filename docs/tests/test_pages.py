# SPDX-License-Identifier: BSD-3-Clause
"""Every example of every page runs and prints what the page shows. Pages that are wrong are found."""

from pathlib import Path

import pytest
from pages import DOCS, name_of, pages
from run_page import parts_of

ROOT = DOCS.parent
TESTS = Path(__file__).parent
AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
# For pages that need no backend.
WITHOUT_A_BACKEND = {AUTOLOAD: "0"}
# Warnings are errors, as with `python -W error`, but for those of names that PyTorch itself uses and will drop.
START = """
import faulthandler, os, sys, warnings
faulthandler.enable()
sys.path[1:1] = [{tests!r}, {root!r}]
warnings.simplefilter("error")
warnings.simplefilter("ignore", DeprecationWarning)
"""
LOAD = f"""
del os.environ[{AUTOLOAD!r}]
import openreg_autoload
openreg_autoload.autoload()
"""
RUN = """
import run_page
from pathlib import Path
print(run_page.run(Path({path!r}), {number}), "examples")
"""


def run_part(path, folder, number, settings, run_python, tools):
    """A part of a page in a process that has imported torch and nothing else, and in a directory of its own."""
    load = LOAD if settings.get(AUTOLOAD) != "0" else ""
    script = START.format(tests=str(TESTS), root=str(ROOT)) + load + RUN.format(path=str(path), number=number)
    # The backend loads after the filters of warnings are set.
    return run_python(script, folder, {"ROOT": str(ROOT), "PATH": tools, **settings, AUTOLOAD: "0"})


def run_page(path, folder, settings, *fixtures):
    """All parts of a page, up to the first that fails; gives the last one's process."""
    for number, part in enumerate(parts_of(path.read_text("utf-8"))):
        done = run_part(path, folder, number, settings | part.settings, *fixtures)
        if done.returncode:
            break
    return done


@pytest.mark.parametrize("path", pages(), ids=name_of)
def test_the_examples_of_a_page_do_what_it_says(path, tmp_path, run_python, tools):
    if "torch.utils.cpp_extension import load" in path.read_text("utf-8") and " " in str(ROOT):
        pytest.skip("PyTorch's load() does not quote the linker's paths, and this checkout's has a space")
    done = run_page(path, tmp_path, {}, run_python, tools)
    assert done.returncode == 0, done.stdout + done.stderr


def fence(language, *lines):
    return "\n".join([f"```{language}", *lines, "```", ""])


@pytest.mark.parametrize(
    "text",
    [
        fence("python", "print(1 + 1)") + "\n" + fence("text", "2"),
        fence("python", "x = 3") + "prose\n" + fence("python", "print(x)") + fence("text", "3"),
        fence("python", "raise ValueError('a long story')") + fence("text", "ValueError: a ... story"),
        fence("python", ">>> 1 + 1", "2"),
        fence("text", "anything at all"),
        fence("console", "echo hello   # greets") + fence("text", "hello"),
        fence("console", "nox -s lint"),
        fence("console", "python3 -m venv .venv && .venv/bin/pip install nox && .venv/bin/nox -s quickstart"),
        fence("console", "pip install --find-links dist openreg-ops"),
        fence("console", "python3 -m venv somewhere", ". somewhere/bin/activate"),
        fence("console", "python -m tools.torch_release 2.15"),
        fence("console", "python packages/openreg-doctor/tools/interfaces.py"),
        fence("console", "OPENREG_POISON=1 python -c 'print(7)'") + fence("text", "7"),
        "---\ncommands: .ci/run\n---\n" + fence("console", "exec </dev/null"),
        "% new process: OPENREG_DEVICE_COUNT=3\n"
        + fence("python", "import os", "print(os.environ['OPENREG_DEVICE_COUNT'])")
        + fence("text", "3"),
        fence("python", "x = 1")
        + "% new process\n"
        + fence("python", "print('x' in globals())")
        + fence("text", "False"),
        '<!--[[[cog source("a.py", "x")]]]-->\n' + fence("python", "raise ValueError") + "<!--[[[end]]]-->\n",
        '<!--[[[cog source("a.cpp", "x")]]]-->\n' + fence("cpp", "int x;") + "<!--[[[end]]]-->\n",
        "In `a.cpp`, after the line with `int y;`:\n\n" + fence("cpp", "int x;"),
        "In `a.py`, a new file:\n\n" + fence("python", "raise ValueError"),
    ],
)
def test_a_true_page_passes(text, tmp_path, run_python, tools):
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    done = run_page(tmp_path / "page.md", tmp_path, WITHOUT_A_BACKEND, run_python, tools)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (fence("python", "print(1 + 1)") + fence("text", "3"), "the page says"),
        (fence("python", "raise ValueError('no')"), "a block ended with ValueError: no"),
        (fence("python", "raise ValueError('no')") + "prose\n" + fence("text", "ValueError: no"), "a block ended with"),
        (fence("python", "raise ValueError('no')") + fence("text", "ValueError: yes"), "the page says"),
        (fence("python", ">>> 1 + 1", "3"), "Expected:"),
        ("% new process\n" + fence("python", "print(1)") + fence("text", "2"), "the page says"),
        ("% new process: OPENREG_NOTHING=1\n" + fence("python", "x = 1"), "no setting OPENREG_NOTHING"),
        (fence("cpp", "int x;"), "a block of cpp: show it as an excerpt"),
        (fence("", "x = 1"), "a block of no language: show it as an excerpt"),
        (fence("console", "false"), "ended with 1"),
        (fence("console", "echo hello") + fence("text", "goodbye"), "the page says"),
        (fence("console", "nox -s no-such-session"), "no nox session"),
        (fence("console", "pip install nox && nox -s no-such-session"), "no nox session"),
        (fence("console", "nox --no-such-option"), "unknown options of nox"),
        (fence("console", "pip install openreg-nothing"), "no package openreg-nothing"),
        (fence("console", "pip install --frobnicate torch"), "unknown option of pip"),
        (fence("console", "pip install packages/openreg-nothing"), "no project in"),
        (fence("console", "pip frobnicate torch"), "unknown command of pip"),
        (fence("console", "python -m tools.frobnicate"), "no program tools/frobnicate.py"),
        (
            fence("console", "python packages/openreg-ops/frobnicate.py"),
            "no program packages/openreg-ops/frobnicate.py",
        ),
        (fence("console", "OPENREG_NOTHING=1 python -c ''"), "no setting OPENREG_NOTHING"),
        (fence("console", "export OPENREG_NOTHING=1"), "no setting OPENREG_NOTHING"),
        ("---\ncommands: .ci/run\n---\n" + fence("console", "rm everything"), "not in .ci/run"),
    ],
)
def test_an_untrue_page_is_found_out(text, problem, tmp_path, run_python, tools):
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    done = run_page(tmp_path / "page.md", tmp_path, WITHOUT_A_BACKEND, run_python, tools)
    assert done.returncode != 0
    assert problem in done.stdout + done.stderr
