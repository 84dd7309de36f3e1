# SPDX-License-Identifier: BSD-3-Clause
"""A manifest is declared to PyTorch's test framework, beside what the backend's modules have declared."""

import enum
import warnings

import pytest

from openreg_testing.conformance import declarations
from openreg_testing.conformance.manifest import Exclusion, Manifest, ManifestError, OperatorExpectations

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "Fail to import hypothesis", ImportWarning)
    from torch.testing._internal import common_device_type, common_utils


@pytest.fixture
def base(monkeypatch):
    """PyTorch's class of the tests of a backend, as it was before the test afterwards."""
    found = common_device_type.PrivateUse1TestBase
    for name in ("op_allowlist", "op_overrides", "test_exclusions"):
        monkeypatch.setattr(found, name, None)
    monkeypatch.setattr(found, "bypass_device_restrictions", False)
    return found


def test_the_declarations_of_the_backend_stay(base):
    base.set_test_configs(
        op_allowlist=["abs", "erf", "exp"], op_overrides={"abs": ["its own"]}, test_exclusions={"TestViewOps": "*"}
    )
    base.bypass_device_restrictions = True
    declarations.apply(
        Manifest(
            operators={"erf": OperatorExpectations(skip="no kernel"), "abs": OperatorExpectations(fails="not yet")}
        )
    )
    assert base.op_allowlist == ["abs", "exp"]
    assert (base.op_overrides["abs"][0], len(base.op_overrides["abs"])) == ("its own", 2)
    assert base.test_exclusions == {"TestViewOps": "*"}
    assert base.bypass_device_restrictions


def test_an_empty_manifest_declares_nothing(base):
    declarations.apply(Manifest())
    assert (base.op_allowlist, base.op_overrides, base.test_exclusions) == (None, None, None)
    assert not base.bypass_device_restrictions


def test_the_manifest_bypasses_the_marks_of_other_devices(base):
    declarations.apply(Manifest(bypass_device_restrictions=True))
    assert base.bypass_device_restrictions


def test_capabilities_of_the_manifest_replace_those_of_the_backend(base, monkeypatch):
    own = {"dtype.fp8": lambda: True, "dtype.bf16": lambda: False}
    monkeypatch.setattr(base, "_capabilities", classmethod(lambda _cls: own), raising=False)
    declarations.apply(Manifest(capabilities={"dtype.bf16": True, "attention.flash_attention": False}))
    assert {name: has() for name, has in base._capabilities().items()} == {
        "dtype.fp8": True,
        "dtype.bf16": True,
        "attention.flash_attention": False,
    }


SKIPPED = Exclusion(skip="no such kernel")


@pytest.mark.parametrize(
    ("entries", "expected", "others"),
    [
        ({"f::TestA*::test_b*": SKIPPED}, {"TestA": ["test_b"]}, []),
        ({"f::TestA*::test_b*": SKIPPED, "f::TestA*::test_c*": SKIPPED}, {"TestA": ["test_b", "test_c"]}, []),
        ({"f::TestA*::*": SKIPPED, "f::TestA*::test_c*": SKIPPED}, {"TestA": "*"}, []),
        ({"f::TestA*::test_b*": Exclusion(fails="not yet")}, {}, []),
        ({"f::TestANPU::test_b*": SKIPPED}, {}, ["f::TestANPU::test_b*"]),
        ({"f::TestA*::test_b_npu": SKIPPED, "f::TestA*": SKIPPED}, {}, ["f::TestA*::test_b_npu", "f::TestA*"]),
        ({"f::*::test_b*": SKIPPED, "f::TestA*::test_*_b": SKIPPED}, {}, ["f::*::test_b*", "f::TestA*::test_*_b"]),
    ],
)
def test_exclusions_have_pytorchs_form(entries, expected, others):
    assert declarations.exclusions_in_pytorchs_form(Manifest(pytorch=entries)) == (expected, others)


def test_a_declared_manifest_joins_the_exclusions_of_the_backend(base, tmp_path):
    base.set_test_configs(test_exclusions={"TestA": {"test_c": {"dtypes": ["float64"]}}, "TestD": ["test_e"]})
    path = tmp_path / "npu.toml"
    path.write_text(
        "[pytorch]\n"
        '"f::TestA*::test_b*" = { skip = "no kernel" }\n'
        '"f::TestD*::test_f*" = { skip = "no kernel" }\n'
        '"f::*::test_g*" = { skip = "no kernel" }\n',
        "utf-8",
    )
    with pytest.warns(UserWarning, match=r"test_exclusions name classes and methods.* alone: f::\*::test_g\*\. Name"):
        declarations.declare(path)
    assert base.test_exclusions == {
        "TestA": {"test_b": "*", "test_c": {"dtypes": ["float64"]}},
        "TestD": ["test_e", "test_f"],
    }


class _Kind(enum.Enum):
    """A stand-in for PyTorch's HardwareClassification, which torch 2.15 and later have."""

    GENERIC = "generic"
    ACCELERATOR = "accelerator"


class _Generic:
    hw_classification = _Kind.GENERIC


class _Unclassified:
    pass


def test_classes_are_selected_by_their_classification(monkeypatch):
    monkeypatch.setattr(common_utils, "HardwareClassification", _Kind, raising=False)
    generic, accelerator = Manifest(hw_classification=("GENERIC",)), Manifest(hw_classification=("ACCELERATOR",))
    assert declarations.selects(generic, _Generic)
    assert not declarations.selects(accelerator, _Generic)
    assert not declarations.selects(generic, _Unclassified)
    assert declarations.selects(Manifest(), _Unclassified)
    with pytest.raises(
        ManifestError, match=r"npu\.toml: hw_classification .* 'TPU'; accepted are GENERIC, ACCELERATOR"
    ):
        declarations.selects(Manifest(path="npu.toml", hw_classification=("TPU",)), _Generic)


def test_without_classifications_in_torch_all_classes_are_selected(monkeypatch):
    monkeypatch.delattr(common_utils, "HardwareClassification", raising=False)
    assert declarations.selects(Manifest(hw_classification=("GENERIC",)), _Unclassified)
