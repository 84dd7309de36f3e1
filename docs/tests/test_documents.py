# SPDX-License-Identifier: BSD-3-Clause
"""Documents outside of the guide have valid shell lines, Python that runs, and quotes that equal their files.

That what they name exists is tested by test_inline.py.
"""

import functools
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT
from shell import ShellError, check_variable, commands, is_checked

from tools.packages import closure, discover

DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "tools" / "README.md",
    *sorted(ROOT.glob("packages/*/README.md")),
]
OTHER_READMES = [path for part in ("benchmarks", "examples", "templates") for path in ROOT.glob(f"{part}/**/README.md")]
# Languages of blocks that are run or checked, and output.
CHECKED = {"python", "console", "text"}
# A program of the reader's, of whose line only the settings can be checked.
READERS_PROGRAM = re.compile(r"\bpython (-m pdb )?train\.py\b")
# Shell lines that neither nox nor pip answers for.
OTHER_LINES = {
    "export PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu",  # the workflow sets it
    "python -m torch.distributed.flight_recorder.fr_trace traces",  # PyTorch's own
}
# A checkout of PyTorch's release, which the reader chooses.
CLONE = re.compile(r"git clone --depth 1 --branch v[\d.]+ https://github.com/pytorch/pytorch$")


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def blocks(text, language):
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", text)


def is_known(line):
    """Whether something answers for a line; raises ShellError if it cannot be true."""
    if READERS_PROGRAM.search(line):
        for name in re.findall(r"\b(OPENREG_\w+)=", line):
            check_variable(name)
        return True
    if line in OTHER_LINES or CLONE.match(line):
        return True
    return is_checked(line) or is_program_of_a_package(line) or is_pytest(line)


def is_pytest(line):
    """Whether a line runs pytest with options that it has, or that our plug-in adds."""
    if not line.startswith("pytest "):
        return False
    unknown = [option for option in re.findall(r" (--?[a-z][\w-]*)", line) if option not in options_of_pytest()]
    if unknown:
        raise ShellError(f"{line}: pytest --help does not know {unknown}")
    return True


@functools.cache
def options_of_pytest():
    """Those of its help, xdist's among them, which the reader installs."""
    done = subprocess.run([sys.executable, "-m", "pytest", "--help"], capture_output=True, text=True, timeout=240)
    return {"-n", *re.findall(r"(?<![\w-])(--?[a-z][\w-]*)", done.stdout)}


def is_program_of_a_package(line):
    """Whether a line runs a module of a package with a command and options that its help names."""
    match = re.match(r"python -m (\w+)((?: \w+)*)(?: .*)?$", line)
    if match is None or match.group(1) not in {package.import_name for package in discover(ROOT).values()}:
        return False
    command = [sys.executable, "-m", match.group(1), *match.group(2).split(), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    unknown = [option for option in re.findall(r" (--[\w-]+)", line) if option not in done.stdout]
    if done.returncode or unknown:
        raise ShellError(f"{line}: the help does not know {unknown or 'the command'}: {done.stdout}{done.stderr}")
    return True


def unknown_lines(text):
    """The lines of console blocks for which nothing answers."""
    return [line for block in blocks(text, "console") for line in commands(block) if not is_known(line)]


def unquoted_blocks(path):
    """The blocks in languages that nothing runs or checks, and that stand in no file that the document links to."""
    text = path.read_text("utf-8")
    links = {(path.parent / link).resolve() for link in re.findall(r"\]\(([^)#:]+)\)", text)}
    sources = [link.read_text("utf-8") for link in links if link.is_file() and link.suffix != ".md"]
    fences = re.findall(r"(?ms)^( *)```([^\n`]*)\n(.*?)^ *```$", text)
    shown = [re.sub(f"(?m)^{indent}", "", block) for indent, language, block in fences if language not in CHECKED]
    return [block for block in shown if not any(f"\n{block}" in f"\n{source}" for source in sources)]


@pytest.mark.parametrize("path", [*DOCUMENTS, *OTHER_READMES], ids=name_of)
def test_what_else_a_document_shows_stands_in_a_file_that_it_links_to(path):
    assert unquoted_blocks(path) == []


def test_a_block_that_differs_from_its_file_is_found_out(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'a'\nversion = '1'\n", "utf-8")
    readme = tmp_path / "README.md"
    block = "```toml\nname = 'a'\nversion = '1'\n```\n"
    link = "[the file](pyproject.toml)\n\n"
    readme.write_text(link + block + block.replace("```", "  ```").replace("name", "  name").replace("vers", "  vers"))
    assert unquoted_blocks(readme) == []
    readme.write_text(link + block.replace("'1'", "'2'"))
    assert unquoted_blocks(readme) == ["name = 'a'\nversion = '2'\n"]
    readme.write_text(block)
    assert unquoted_blocks(readme) == ["name = 'a'\nversion = '1'\n"]


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_the_shell_lines_of_a_document_can_be_true(path):
    assert unknown_lines(path.read_text("utf-8")) == []


def test_an_option_that_pytest_does_not_have_is_found_out():
    assert unknown_lines("```console\npytest --device openreg -n 4\n```\n") == []
    with pytest.raises(ShellError, match="--no-such-option"):
        unknown_lines("```console\npytest --no-such-option\n```\n")


def test_a_shell_line_that_nothing_answers_for_is_found_out():
    assert unknown_lines("```console\nnox -s lint\nrm everything\n```\n") == ["rm everything"]


def test_a_setting_that_does_not_exist_is_found_out_in_a_line_for_the_reader():
    with pytest.raises(ShellError, match="no setting OPENREG_NOTHING"):
        unknown_lines("```console\nOPENREG_NOTHING=1 python train.py\n```\n")


def test_a_program_that_a_package_does_not_have_is_found_out():
    with pytest.raises(ShellError, match="the help does not know"):
        unknown_lines("```console\npython -m openreg_autoload fly --high\n```\n")


def test_lines_that_are_excused_stand_in_a_document():
    text = "\n".join(path.read_text("utf-8") for path in DOCUMENTS)
    assert [line for line in OTHER_LINES if line not in text] == []


# Of the packages that are here; the code of every README also runs in its package's session, as part of the example.
@pytest.mark.parametrize("name", closure("openreg-meta", discover(ROOT)))
def test_the_first_program_of_a_packages_readme_runs(name, tmp_path, run_python):
    program = blocks((ROOT / "packages" / name / "README.md").read_text("utf-8"), "python")[0]
    done = run_python("import warnings; warnings.simplefilter('error')\n" + program, tmp_path, {})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout != ""


def test_the_program_of_the_readme_has_the_race_that_is_shown(tmp_path):
    text = (ROOT / "README.md").read_text("utf-8")
    (program,), shown = blocks(text, "python"), blocks(text, "text")[0]
    (tmp_path / "train.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "-W", "error", "train.py"]
    settings = {**os.environ, "OPENREG_SANITIZER": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True)
    assert done.returncode == 66
    printed = iter(done.stderr.splitlines())
    assert [line for line in shown.splitlines() if line not in printed] == []  # in this order
