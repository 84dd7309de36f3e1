# SPDX-License-Identifier: BSD-3-Clause
"""The kit runs PyTorch's own test files on the device, tested with a small file in a folder like a checkout's."""

import re
import shutil
from importlib import metadata
from pathlib import Path

import pytest
from _kit import call

from openreg_testing.conformance import upstream
from openreg_testing.conformance.bring_up import Setup
from openreg_testing.conformance.manifest import Exclusion, Manifest, OperatorExpectations
from openreg_testing.conformance.upstream import UpstreamError

pytestmark = pytest.mark.timeout(1800)
FURTHER = pytest.mark.endurance  # further forms of what the default session runs, each in processes of its own

FILE = Path(__file__).parent / "shapes_of_upstream.py"
PLAIN = """
import torch
import torch_openreg
from torch.testing._internal.common_utils import TestCase

class TestPlain(TestCase):
    def test_right(self):
        self.assertEqual(torch.ones(2, device="openreg").sum().item(), 2)

    def test_wrong(self):
        self.assertEqual(torch.ones(2, device="openreg").sum().item(), 3)
"""
TORCH = metadata.version("torch")


@pytest.fixture
def checkout(tmp_path):
    """The folder test/ of a checkout of the installed version."""
    folder = tmp_path / "test"
    folder.mkdir()
    shutil.copy(FILE, folder / "test_shapes.py")
    (tmp_path / "version.txt").write_text(f"{'.'.join(TORCH.split('.')[:2])}.0a0\n", "utf-8")
    return folder


def run(checkout, manifest=None, patterns=(), files=("test_shapes.py",), shard=(1, 1)):
    setup = Setup("openreg", ("torch_openreg",), manifest or Manifest())
    found = call(upstream.run, setup, checkout, files, patterns, jobs=1, limit=300, shard=shard)
    results = {re.sub(r"test_shapes::\w+::", "", result.name): result for result, _ in found if result is not None}
    return results, [note for _, note in found if note]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkout") / "test"
    folder.mkdir()
    shutil.copy(FILE, folder / "test_shapes.py")
    return run(folder)[0]


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("test_flip_openreg", "passed", ""),
        ("test_sum_openreg_float32", "passed", ""),
        ("test_sum_openreg_int64", "passed", ""),
        ("test_operator_abs_openreg_float32", "passed", ""),
        ("test_counts_warnings_openreg", "passed", ""),
        ("test_fails_openreg", "failed", "one is not two"),
        ("test_crashes_openreg", "failed", "crashed"),
        ("test_of_the_cpu_openreg", "skipped", "cpu"),
        ("test_is_left_out_openreg", "skipped", "left out by its author"),
        ("test_is_known_to_fail_openreg", "skipped", "PyTorch's own table"),
    ],
)
def test_every_test_of_the_device_has_its_result(results, name, status, reason):
    assert results[name].status == status, results[name]
    assert reason in results[name].reason


def test_only_tests_of_the_device_are_run(results):
    assert all("openreg" in name for name in results)


def test_the_manifest_chooses_and_excuses(checkout):
    manifest = Manifest(
        operators={
            "erf": OperatorExpectations(skip="there is no kernel"),
            "exp": OperatorExpectations(dtypes=("bfloat16",)),
        },
        pytorch={
            "test_shapes::*::test_fails*": Exclusion(fails="it is known"),
            "test_shapes::*::test_crashes*": Exclusion(skip="it is known, too"),
            "test_shapes::*::test_flip*": Exclusion(fails="it was so once"),
        },
    )
    found, notes = run(checkout, manifest, ["*operator*", "*fails*", "*crashes*", "*flip*"])
    assert {name for name in found if "operator" in name} == {
        "test_operator_abs_openreg_float32",
        "test_operator_exp_openreg_float32",
    }
    assert found["test_operator_abs_openreg_float32"].status == "passed"
    assert found["test_operator_exp_openreg_float32"].reason == "the manifest runs exp in bfloat16 only"
    assert found["test_fails_openreg"].status == "expected failure"
    assert (found["test_crashes_openreg"].status, found["test_crashes_openreg"].reason) == (
        "skipped",
        "it is known, too",
    )
    (note,) = notes
    assert "test_flip_openreg: the manifest lists an expected failure (it was so once), but the test passes" in note


def test_tests_for_other_devices_run_where_the_manifest_bypasses_their_marks(checkout):
    found, _ = run(checkout, Manifest(bypass_device_restrictions=True), ["*of_the_cpu*"])
    result = found["test_of_the_cpu_openreg"]
    assert (result.status, "not run elsewhere" in result.reason) == ("failed", True)


def test_a_file_that_cannot_be_imported_is_a_failure(checkout):
    (checkout / "test_broken.py").write_text("import no_such_module\n", "utf-8")
    setup = Setup("openreg", ("torch_openreg",))
    ((result, _),) = call(upstream.run, setup, checkout, ["test_broken.py"], (), jobs=1, limit=300)
    assert result.status == "failed"
    assert "no_such_module" in result.reason


@FURTHER
def test_a_file_that_makes_no_tests_for_devices_is_run_as_it_is(checkout):
    folder = checkout / "torch_openreg"
    folder.mkdir()
    (folder / "test_plain.py").write_text(PLAIN, "utf-8")
    found, _ = run(checkout, files=["torch_openreg/test_plain.py"])
    assert {name: result.status for name, result in found.items()} == {
        "torch_openreg/test_plain::TestPlain::test_right": "passed",
        "torch_openreg/test_plain::TestPlain::test_wrong": "failed",
    }


@FURTHER
def test_a_shard_is_a_part_and_all_of_them_are_the_whole(checkout):
    for name in ("first", "second", "third"):
        (checkout / f"test_{name}.py").write_text(PLAIN, "utf-8")
    files, patterns = ["test_first.py", "test_second.py", "test_third.py"], ["*right"]
    parts = [run(checkout, files=files, patterns=patterns, shard=(k, 2))[0] for k in (1, 2)]
    right = [f"test_{name}::TestPlain::test_right" for name in ("first", "second", "third")]
    assert [list(part) for part in parts] == [right[::2], right[1::2]]


def test_a_folder_stands_for_its_files_which_find_what_lies_beside_them(checkout):
    folder = checkout / "parts"
    folder.mkdir()
    (folder / "beside.py").write_text("ONE = 1\n", "utf-8")
    (folder / "test_first.py").write_text(f"from beside import ONE\n{PLAIN}", "utf-8")
    (folder / "test_more.py").write_text(PLAIN, "utf-8")
    found, _ = run(checkout, files=["parts"], patterns=["*right"])
    assert {name: result.status for name, result in found.items()} == {
        "parts/test_first::TestPlain::test_right": "passed",
        "parts/test_more::TestPlain::test_right": "passed",
    }


def test_those_of_the_example_backend_belong_to_the_device_of_its_name(checkout):
    folder = checkout / upstream.OF_OPENREG
    folder.mkdir(parents=True)
    (folder / "test_plain.py").write_text(PLAIN, "utf-8")
    found, _ = run(checkout, files=(), patterns=["*test_right"])
    assert list(found) == [f"{upstream.OF_OPENREG}/test_plain::TestPlain::test_right"]
    with pytest.raises(UpstreamError, match="contains none of the default files"):
        list(upstream.run(Setup("cpu"), checkout, (), (), jobs=1, limit=300))


def test_a_file_outside_of_the_folder_is_refused(checkout):
    with pytest.raises(UpstreamError, match=r"--file '\.\./version\.txt': lies outside of .*; give a path inside"):
        run(checkout, files=["../version.txt"])


def test_a_folder_without_tests_is_reported(checkout):
    (checkout / "empty").mkdir()
    with pytest.raises(UpstreamError, match=r"--file 'empty': contains no files test_\*\.py"):
        run(checkout, files=["empty"])


def test_a_file_that_is_not_there_is_reported(checkout):
    with pytest.raises(UpstreamError, match=r"--file 'test_other\.py': .* there are test_shapes\.py"):
        run(checkout, files=("test_other.py",))


def test_a_folder_without_the_files_is_reported(checkout):
    with pytest.raises(UpstreamError, match="contains none of the default files"):
        run(checkout, files=())


def test_exclusions_of_tests_that_are_not_there_are_reported(checkout):
    shutil.move(checkout / "test_shapes.py", checkout / "test_view_ops.py")
    (checkout / "test_shape_ops.py").write_text("import no_such_module\n", "utf-8")
    names = ["test_view_ops::*::test_flop*", "test_view_ops::*::test_flip*", "test_shape_ops::TestShapeOps*::test_f*"]
    entries = {name: Exclusion(fails="so it is", strict=False) for name in names}
    found, (problem,) = run(checkout, Manifest(path="npu.toml", pytorch=entries), files=())
    assert problem.startswith("npu.toml: [pytorch] 'test_view_ops::*::test_flop*' names no test of the given files")
    assert found["test_shape_ops::import"].status == "failed"  # so it is unknown which tests the file has
    assert len(found) > 1


def test_the_installed_version_is_taken(checkout):
    upstream.refuse_other_version(checkout, TORCH)


def test_tests_of_another_version_are_refused(checkout):
    (checkout.parent / "version.txt").write_text("2.4.0a0\n", "utf-8")
    release = ".".join(TORCH.split(".")[:2])
    with pytest.raises(UpstreamError, match=rf"is of PyTorch 2\.4\.0a0, .*check out the branch release/{release}"):
        upstream.refuse_other_version(checkout, TORCH)


def test_a_folder_of_no_version_is_refused(checkout):
    (checkout.parent / "version.txt").unlink()
    with pytest.raises(UpstreamError, match="the release of PyTorch is unknown"):
        upstream.refuse_other_version(checkout, TORCH)


def test_what_is_no_checkout_is_refused(tmp_path):
    with pytest.raises(UpstreamError, match=r"there is no folder .*absent; give the folder test/"):
        upstream.refuse_other_version(tmp_path / "absent", TORCH)
    with pytest.raises(UpstreamError, match=r"has no files test_\*\.py"):
        upstream.refuse_other_version(tmp_path, TORCH)
