# SPDX-License-Identifier: BSD-3-Clause
"""A package made of the template keeps every rule of the repository. `nox -s template` builds and tests one."""

import re
import sys

import pytest
from helpers import run

from tools import hooks, new_package, packages, providers
from tools.checks import repo_checks
from tools.packages import ROOT, git
from tools.sessions import subsets

DESCRIPTION = "Counts what the device's owner wants counted"


@pytest.mark.parametrize("name", ["openreg-tally", "openreg-event-log2"])
def test_the_new_package_keeps_every_rule_and_nothing_else_changes(checkout, name):
    written = new_package.create(checkout, name, DESCRIPTION)
    assert providers.write(checkout) == []
    assert [problem for check in repo_checks.CHECKS for problem in check(checkout)] == []
    assert hooks.problems(checkout) == []
    assert git(checkout, "diff", "--name-only") == ""
    assert hooks.absent_packages(checkout, [name])[name]["hooks"] != []
    assert f'description = "{DESCRIPTION}"' in (checkout / "packages" / name / "pyproject.toml").read_text("utf-8")
    for path in written:
        text = path.relative_to(checkout).as_posix() + path.read_text("utf-8")
        assert not re.search(rf"openreg(-|_|::)example|example_scale|{new_package.DESCRIPTION}", text), path


def test_two_new_packages_keep_every_rule_together(checkout):
    for name in ("openreg-tally", "openreg-event-log2"):
        new_package.create(checkout, name, DESCRIPTION)
    assert providers.write(checkout) == []
    assert [problem for check in repo_checks.CHECKS for problem in check(checkout)] == []


def test_it_gains_its_subsets(checkout):
    new_package.create(checkout, "openreg-tally", DESCRIPTION)
    found = packages.discover(checkout)
    needed = {"openreg-doctor", "openreg-runtime", "openreg-ops"}
    assert set(packages.closure("openreg-tally", found)) == {*needed, "openreg-tally"}
    assert {"runtime+ops+tally", "runtime+ops+tally+autoload", "meta+tally"} <= set(subsets.subsets(found))


@pytest.mark.parametrize(
    ("name", "description"),
    [
        *((name, DESCRIPTION) for name in ("openreg-", "openreg", "tally", "openreg-Tally", "openreg_tally")),
        *((name, DESCRIPTION) for name in ("openreg-2d", "openreg-x/../../x", "openreg-x\n", "openreg-lambda")),
        ("openreg-".ljust(new_package.LONGEST_NAME + 1, "x"), DESCRIPTION),
        ("openreg-ops", DESCRIPTION),
        *(("openreg-tally", text) for text in ("", " ", 'says "x"', "a\nb", "back\\slash", "x" * 101, "Ends.")),
    ],
)
def test_a_bad_name_and_a_bad_description_are_refused_and_nothing_is_written(checkout, name, description):
    with pytest.raises(ValueError, match=r"is no name for a package|is no description|is taken: packages"):
        new_package.create(checkout, name, description)
    assert git(checkout, "ls-files", "--others") == ""


@pytest.mark.parametrize("arguments", [["openreg-tally"], ["openreg-ops", DESCRIPTION]])
def test_the_command_refuses_with_exit_status_2(arguments):
    result = run(sys.executable, "-m", "tools.new_package", *arguments, cwd=ROOT)
    assert result.returncode == 2
    assert result.stderr.startswith(("usage: ", "new_package: "))
