# SPDX-License-Identifier: BSD-3-Clause
"""The kit runs test templates that PyTorch instantiates for each compiler device, in a small file like Inductor's."""

import importlib.util
import sys
import unittest
from importlib import metadata
from types import ModuleType

import pytest
import torch
from _kit import call

from openreg_testing.conformance import upstream
from openreg_testing.conformance.bring_up import Setup
from openreg_testing.conformance.templates import made_of_templates

# PyTorch's test utilities say so where hypothesis is not installed, which they do not need here.
pytestmark = pytest.mark.filterwarnings("ignore:Fail to import hypothesis:ImportWarning")

DEVICE = "openreg"
# What the names do in PyTorch's file, in a few lines.
FILE = """
import torch
from torch.testing._internal.common_utils import TestCase

SEEN = []

def check_model(self, model, inputs, kwargs=None, *, factor=1):
    SEEN.append((inputs, kwargs))
    self.assertEqual(factor * model(*inputs, **(kwargs or {})), model(*inputs, **(kwargs or {})))

def copy_tests(template, other, suffix):
    for name, value in vars(template).items():
        if name.startswith("test_"):
            setattr(other, f"{name}_{suffix}", value)

class CommonTemplate:
    def test_right(self):
        self.common(lambda x: x + 1, (torch.ones(3),))

    def test_wrong(self):
        self.common(lambda x: x + 1, (torch.ones(3),), factor=2)

    def test_of_the_device(self):
        assert torch.ones(1, device=self.device).device.type == "openreg"

class AllSizesCommonTemplate:
    def test_strides(self):
        x = torch.arange(12.0).view(3, 4).t()[1:, 1:].requires_grad_()
        self.common(torch.nn.Linear(2, 3), (x,), {})
        self.common(lambda x, scale: x * scale, (x,), {"scale": torch.tensor(2.0)})
"""


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "test_generated.py"
    path.write_text(FILE, "utf-8")
    spec = importlib.util.spec_from_file_location("test_generated", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_each_template_becomes_a_class_of_tests(module):
    made = made_of_templates(module, DEVICE)
    assert sorted(made) == ["AllSizesCommonTemplateOPENREG", "CommonTemplateOPENREG"]
    names = unittest.TestLoader().getTestCaseNames(made["CommonTemplateOPENREG"])
    assert names == ["test_of_the_device_openreg", "test_right_openreg", "test_wrong_openreg"]


def test_a_template_is_made_for_the_file_that_has_it(module, monkeypatch):
    monkeypatch.setitem(sys.modules, module.__name__, module)
    twin = ModuleType("test_twin")
    vars(twin).update({name: value for name, value in vars(module).items() if not name.startswith("__")})
    twin.TwinCommonTemplate = type("TwinCommonTemplate", (module.CommonTemplate,), {"__module__": twin.__name__})
    assert list(made_of_templates(twin, DEVICE)) == ["TwinCommonTemplateOPENREG"]


def test_operands_come_to_the_device_as_they_lie(module):
    made = made_of_templates(module, DEVICE)
    result = unittest.TestResult()
    made["AllSizesCommonTemplateOPENREG"]("test_strides_openreg").run(result)
    assert result.wasSuccessful(), result.errors
    (x,), _ = module.SEEN[0]
    assert (x.device.type, x.stride(), x.storage_offset(), x.requires_grad) == (DEVICE, (1, 4), 5, True)
    assert x.tolist() == [[5.0, 9.0], [6.0, 10.0], [7.0, 11.0]]
    assert module.SEEN[1][1]["scale"].device.type == DEVICE


def test_what_lacks_a_part_of_the_structure_is_no_template(module):
    del module.check_model
    assert made_of_templates(module, DEVICE) == {}


def test_the_kit_runs_them_from_a_checkout(tmp_path):
    folder = tmp_path / "test" / "inductor"
    folder.mkdir(parents=True)
    (folder / "test_generated.py").write_text(FILE, "utf-8")
    (tmp_path / "test" / "test_any.py").write_text("", "utf-8")
    (tmp_path / "version.txt").write_text(f"{'.'.join(metadata.version('torch').split('.')[:2])}.0a0\n", "utf-8")
    setup = Setup(DEVICE, ("torch_openreg",))
    found = call(upstream.run, setup, tmp_path / "test", ["inductor"], (), jobs=1, limit=300)
    assert {result.name.rsplit("::", 1)[1]: result.status for result, _ in found} == {
        "test_of_the_device_openreg": "passed",
        "test_right_openreg": "passed",
        "test_strides_openreg": "passed",
        "test_wrong_openreg": "failed",
    }


def test_a_tensor_without_strides_is_moved_as_it_is(module):
    sparse = torch.eye(3).to_sparse()
    (common,) = {made.common for made in made_of_templates(module, "cpu").values() if "All" not in made.__name__}
    common(unittest.TestCase(), lambda x: x.to_dense().sum(), (sparse,))
    assert module.SEEN[-1][0][0].layout == torch.sparse_coo
