# SPDX-License-Identifier: BSD-3-Clause
"""The tested subsets of the packages follow from what the packages declare."""

import re
from dataclasses import replace
from itertools import pairwise
from unittest.mock import Mock

import pytest

from tools import packages
from tools.packages import ROOT, Package
from tools.sessions import package_session, subsets


def package(name, *requirements, group=None, extras=None):
    entry_points = {group: {name: name}} if group else {}
    return Package(name, ROOT / "packages" / name, "0.1.0", requirements, (), entry_points, extras or {})


def make(*items):
    return {item.name: item for item in items}


RUNTIME = package("openreg-runtime", "torch==2.13.*", group=subsets.PLUGINS)
OPS = package("openreg-ops", "openreg-runtime==0.1.*", group=subsets.PLUGINS)
LOADER = package("openreg-autoload", "torch==2.13.*", group=subsets.LOADERS)
SUM = package("openreg-meta", "openreg-ops==0.1.*", "openreg-autoload==0.1.*")
OTHER = package("openreg-other", "openreg-runtime==0.1.*", group=subsets.PLUGINS)


def brought_by_meta():
    """The packages without which there is no openreg-meta; more may come, and change nothing here."""
    found = packages.discover(ROOT)
    brought = packages.closure("openreg-meta", found)
    return {name: package for name, package in found.items() if name in brought}


def test_the_subsets_of_this_repository_and_what_pip_is_asked_for():
    plugins = [
        *(f"runtime{parts}{loader}" for parts in ("", "+amp", "+ops", "+amp+ops") for loader in ("", "+autoload"))
    ]
    found = subsets.subsets(brought_by_meta())
    assert list(found) == [*plugins, "doctor", "meta"]
    assert found["runtime"].requested == ("openreg-runtime",)
    assert set(found["runtime+amp+ops+autoload"].requested) == {"openreg-amp", "openreg-ops", "openreg-autoload"}
    assert found["meta"].requested == ("openreg-meta",)
    assert set(found["meta"].members) == set(brought_by_meta())


@pytest.mark.parametrize(
    ("added", "names"),
    [
        (OTHER, {"runtime+other", "runtime+other+autoload", "meta+other"}),
        # No plug-in, and it joins in the same way.
        (package("openreg-x", "openreg-ops==0.1.*"), {"runtime+ops+x", "runtime+ops+x+autoload", "meta+x"}),
    ],
)
def test_a_package_outside_of_the_sum_joins_with_what_it_needs_and_with_everything(added, names):
    before = set(subsets.subsets(make(RUNTIME, OPS, LOADER, SUM)))
    after = subsets.subsets(make(RUNTIME, OPS, LOADER, SUM, added))
    assert set(after) - before == names
    assert before <= set(after)
    (whole,) = (after[name] for name in names if name.startswith("meta"))
    assert set(whole.members) == {item.name for item in (RUNTIME, OPS, LOADER, SUM, added)}


EXTRAS = ("x0", "x1", "x2", "all")


def with_extras(count):
    """The stubs of `count` packages, each an extra of the sum, the second of which needs the first."""
    added = [package(f"openreg-x{number}", "openreg-ops==0.1.*", group=subsets.PLUGINS) for number in range(count)]
    if count > 1:
        added[1] = package("openreg-x1", "openreg-x0==0.1.*", group=subsets.PLUGINS)
    extras = {item.short_name: (f"{item.name}==0.1.*",) for item in added}
    extras = {**extras, "all": tuple(pin for pins in extras.values() for pin in pins), "test": ("pytest>=8",)}
    return make(RUNTIME, OPS, LOADER, package(SUM.name, *SUM.requirements, extras=extras), *added)


def test_an_extra_joins_with_what_it_needs_and_with_the_sum_that_offers_it():
    before = set(subsets.subsets(make(RUNTIME, OPS, LOADER, SUM)))
    found = subsets.subsets(with_extras(1))
    assert set(found) - before == {"runtime+ops+x0", "runtime+ops+x0+autoload", "meta[x0]"}
    assert found["meta[x0]"].requested == ("openreg-meta[x0]",)
    assert set(found["meta[x0]"].members) == {*with_extras(1)}
    assert "openreg-x0" not in found["meta"].members


def test_extras_are_proved_alone_and_all_together_and_three_subsets_come_with_each():
    found = subsets.subsets(with_extras(3))
    assert [name for name in found if name.startswith("meta")] == ["meta", *(f"meta[{x}]" for x in EXTRAS)]
    assert set(found["meta[x1]"].members) == {*with_extras(3)} - {"openreg-x2"}
    assert set(found["meta[all]"].members) == {*with_extras(3)}
    assert found["meta[all]"].requested == ("openreg-meta[all]",)
    counts = [len(subsets.subsets(with_extras(count))) for count in range(2, 9)]
    assert {after - before for before, after in pairwise(counts)} == {3}


def test_a_package_that_is_no_extra_joins_the_sum_beside_them():
    found = subsets.subsets({**with_extras(2), OTHER.name: OTHER})
    assert {"meta+other", "meta[x0]", "meta[all]"} <= set(found)
    assert not {"meta[other]", "meta[x0]+other", "meta+x0"} & set(found)


def test_pip_is_asked_for_extras_and_the_tests_of_a_package_at_once():
    assert package_session.with_extra("openreg-ops", "test") == "openreg-ops[test]"
    assert package_session.with_extra("openreg-meta[x]", "test") == "openreg-meta[x,test]"
    assert package_session.with_extra("openreg-meta[x]", "") == "openreg-meta[x]"


def test_all_tests_of_a_package_run_once_among_the_sums():
    def thorough(found):
        return {name: set(subset.thorough) for name, subset in subsets.subsets(found).items() if subset.thorough}

    parts = {RUNTIME.name, OPS.name, LOADER.name}
    assert thorough(make(RUNTIME, OPS, LOADER, SUM, OTHER)) == {"meta": parts}
    tool = package("openreg-tool")  # neither a plug-in nor a loader, and the sum brings it
    whole = package(SUM.name, *SUM.requirements, "openreg-tool==0.1.*")
    assert thorough(make(RUNTIME, OPS, LOADER, whole, tool)) == {"meta": {*parts, "openreg-tool"}}
    assert thorough(with_extras(1)) == {"meta": parts, "meta[x0]": {"openreg-x0"}}
    assert thorough(with_extras(2)) == {"meta": parts, "meta[all]": {"openreg-x0", "openreg-x1"}}


@pytest.mark.parametrize("name", ["meta", "meta[x0]"])
def test_a_subset_runs_all_tests_where_it_is_thorough_and_the_marked_ones_elsewhere(monkeypatch, name):
    ran = {}
    environment = Mock(run=lambda step, *arguments: ran.update({step: arguments}))
    monkeypatch.setattr(subsets, "holds", lambda *_: True)
    monkeypatch.setattr(subsets, "example_scripts", lambda _: [])
    made = Mock(create=lambda *_: environment, wheels=with_extras(1))
    subset = subsets.subsets(with_extras(1))[name]
    subsets.run_subset(Mock(), made, with_extras(1), subset)
    tests = {item: ran[f"{item}: pytest"] for item in subset.members}
    assert {item for item, arguments in tests.items() if subsets.MARK not in arguments} == set(subset.thorough)
    assert all(str(ROOT / "packages" / "test_installed.py") in arguments for arguments in tests.values())


def test_files_without_a_marked_test_are_not_even_collected(tmp_path):
    tests = tmp_path / "tests"
    (tests / "device").mkdir(parents=True)
    (tests / "test_lane.py").write_text("import installed_in_the_lane_only\n", "utf-8")
    marked = tests / "device" / "test_marked.py"
    marked.write_text(f"import pytest\n\npytestmark = pytest.mark.{subsets.MARK}\n", "utf-8")
    found = subsets.marked_tests(replace(RUNTIME, folder=tmp_path))
    assert found == [str(marked), str(ROOT / "packages" / "test_installed.py")]


def test_a_subset_whose_environment_has_anything_else_fails_before_its_tests(monkeypatch):
    monkeypatch.setattr(subsets, "holds", lambda *_: False)
    session, made = Mock(error=Mock(side_effect=RuntimeError)), Mock(wheels=with_extras(1))
    with pytest.raises(RuntimeError):
        subsets.run_subset(session, made, with_extras(1), subsets.subsets(with_extras(1))["runtime+ops"])
    assert "does not hold exactly openreg-runtime, openreg-ops" in session.error.call_args.args[0]
    assert not made.create.return_value.run.called


def test_what_plugins_build_on_goes_without_saying_and_is_proved_alone():
    base = package("openreg-base")
    runtime = package("openreg-runtime", "openreg-base==0.1.*", group=subsets.PLUGINS)
    found = subsets.subsets(make(base, runtime, OPS, LOADER, SUM))
    assert list(found) == ["runtime", "runtime+autoload", "runtime+ops", "runtime+ops+autoload", "base", "meta"]
    assert set(found["runtime"].members) == {"openreg-base", "openreg-runtime"}
    assert found["base"].requested == found["base"].members == ("openreg-base",)


def test_a_dependency_between_plugins_leaves_only_the_sets_that_it_allows():
    amp = package("openreg-amp", "openreg-ops==0.1.*", group=subsets.PLUGINS)
    assert list(subsets.subsets(make(RUNTIME, OPS, amp))) == ["runtime", "runtime+ops", "runtime+ops+amp"]


def test_what_the_tests_of_a_requested_package_need_is_there_as_well():
    kit = package("openreg-kit", "openreg-base==0.1.*", extras={"test": ("openreg-meta==0.1.*",)})
    ops = package("openreg-ops", "openreg-runtime==0.1.*", group=subsets.PLUGINS, extras={"test": ("openreg-kit",)})
    found = make(package("openreg-base"), RUNTIME, ops, LOADER, SUM, kit)
    known = subsets.subsets(found)
    assert subsets.installed(known["runtime+ops"], found) == [
        *("openreg-base", "openreg-runtime", "openreg-ops", "openreg-kit")
    ]
    assert set(subsets.installed(known["kit"], found)) == set(found)
    assert subsets.installed(known["runtime"], found) == ["openreg-runtime"]


def test_names_may_come_in_any_order_and_none_means_all():
    found = packages.discover(ROOT)
    (chosen,) = subsets.choose(["autoload+ops+runtime"], found)
    assert chosen.name == "runtime+ops+autoload"
    assert len(subsets.choose([], found)) == len(subsets.subsets(found))


def test_the_list_says_what_to_install_and_builds_nothing(capsys):
    subsets.run_subsets(Mock(posargs=["--list"]), Mock(packages=packages.discover(ROOT)))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == list(subsets.subsets(packages.discover(ROOT)))
    assert ["meta", "pip", "install", "openreg-meta"] in lines


@pytest.mark.parametrize("argument", ["nonsense", "--nonsense", "", "ops+amp"])
def test_an_unknown_subset_is_refused_with_the_names_there_are(argument):
    with pytest.raises(ValueError, match=f"no subset is called '{re.escape(argument)}'; there are: runtime,"):
        subsets.choose(["runtime", argument], packages.discover(ROOT))


def test_a_session_names_the_packages_that_it_requests_and_hides_settings(monkeypatch):
    hidden = (
        *("OPENREG_OPS", "PYTORCH_ALLOC_CONF", "TORCH_LOGS", "TORCHDYNAMO_VERBOSE", "TORCHINDUCTOR_FREEZING"),
        *("PYTHONPATH", "PYTHONUNBUFFERED", "PYTEST_ADDOPTS", "CI"),
    )
    for variable in hidden:
        monkeypatch.setenv(variable, "1")
    variables = package_session.session_variables(["openreg-amp", "openreg-ops"])
    assert variables["OPENREG_TEST_SESSION"] == "openreg-amp openreg-ops"
    assert [variable for variable in hidden if variables.get(variable, "kept") is not None] == []
