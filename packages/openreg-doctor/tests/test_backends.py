# SPDX-License-Identifier: BSD-3-Clause
"""The doctor finds what small PrivateUse1 backends lack, each of which is written in Python without some part."""

import re
from pathlib import Path

import pytest

from openreg_testing.doctor_site import Installation

REPOSITORY = Path(__file__).resolve().parents[3]

RENAME = """
import sys, types
import torch

torch.utils.rename_privateuse1_backend("toaster")
"""

# Every name whose absence breaks ordinary use; the others are missing.
MODULE = """
module = types.ModuleType("torch.toaster")
module.is_available = module.is_initialized = lambda: True
module._initialized = True
module.device_count = lambda: 1
module.current_device = lambda: 0
module.set_device = module.manual_seed_all = lambda value: None
module._is_in_bad_fork = lambda: False
module.get_rng_state = lambda device="toaster": torch.zeros(16, dtype=torch.uint8)
module.set_rng_state = lambda state, device="toaster": None
module.device = type("device", (), {"__enter__": lambda self: None, "__exit__": lambda self, *args: None})
module.get_amp_supported_dtype = lambda: [torch.bfloat16]
torch._register_device_module("toaster", module)
"""

METHODS = "torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)\n"

# As much of the hooks and the guard as can be written in Python.
HOOKS = """
class Hooks(torch._C._acc.PrivateUse1Hooks):
    def is_available(self): return True
    def is_built(self): return True
    def has_primary_context(self, index): return True

class Guard(torch._C._acc.DeviceGuard):
    def type_(self): return torch._C._autograd.DeviceType.PrivateUse1

hooks, guard = Hooks(), Guard()
torch._C._acc.register_python_privateuseone_hook(hooks)
torch._C._acc.register_python_privateuseone_device_guard(guard)
"""

OPERATORS = """
library = torch.library.Library("aten", "IMPL")
library.impl("abs", lambda tensor: tensor, "PrivateUse1")
"""


def examine(factory, code, *arguments):
    installation = Installation(factory.mktemp("backend") / "site")
    (installation.folder / "toaster.py").write_text(code, "utf-8")
    return installation.doctor("--device", "toaster", "--import", "toaster", *arguments)


@pytest.fixture(scope="module")
def nameless(tmp_path_factory):
    return examine(tmp_path_factory, RENAME)


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    return examine(tmp_path_factory, RENAME + MODULE.replace("module.manual_seed_all = ", ""))


@pytest.fixture(scope="module")
def hooked(tmp_path_factory):
    return examine(tmp_path_factory, RENAME + MODULE + METHODS + HOOKS + OPERATORS)


def model_of(text):
    """The file that a finding names as a model, which has to be there."""
    (path,) = re.findall(r"model: (packages/\S+)", text)
    assert (REPOSITORY / path).is_file(), path
    return Path(path)


def test_a_backend_without_a_module(nameless):
    nameless.finds("module", "torch.toaster does not exist", 'torch._register_device_module("toaster", module)')


def test_names_are_looked_up_in_a_module_that_has_no_name(tmp_path_factory):
    module = "type('StandIn', (), {'is_available': staticmethod(lambda: True)})()"
    result = examine(tmp_path_factory, RENAME + f"torch._register_device_module('toaster', {module})\n")
    assert "torch.toaster.__name__ is '', should end in '.toaster'" in result.texts("warning")["module.__name__"]
    assert "module.is_available" in result.texts("ok")
    result.finds("module.manual_seed_all", "torch.toaster.manual_seed_all: missing")


def test_what_pytorch_needs_is_a_problem_and_what_some_users_need_a_note(named):
    named.finds("module.manual_seed_all", "torch.toaster.manual_seed_all: missing", "define manual_seed_all")
    named.finds("module.manual_seed_all", "in the repository of openreg")
    assert model_of(named.texts("problem")["module.manual_seed_all"]).suffix == ".py"
    assert "module.is_available" not in named.problems
    assert "fully_shard" in named.texts("warning")["module.Stream"]
    assert "module.seed_all" in named.texts("note")


def test_unregistered_hooks(named):
    named.finds("accelerator_hooks", "is not registered", "at::RegisterPrivateUse1HooksInterface")
    assert "accelerator_hooks.getPinnedMemoryAllocator" not in named.problems  # one fault, not fourteen
    assert "the interface is not registered" in named.texts("unseen")["accelerator_hooks.getPinnedMemoryAllocator"]


def test_an_unregistered_guard(named):
    named.finds("guard", "not linked with support for toaster", "C10_REGISTER_GUARD_IMPL")


def test_missing_methods_of_tensors(named):
    check = "registration.torch.utils.generate_methods_for_privateuse1_backend"
    assert "torch.Tensor.is_toaster" in named.texts("warning")[check]


def test_a_single_missing_hook(hooked):
    warning = hooked.texts("warning")["accelerator_hooks.getPinnedMemoryAllocator"]
    assert "implement `getPinnedMemoryAllocator`" in warning  # what PyTorch said
    assert "DataLoader" in warning
    assert "implement getPinnedMemoryAllocator; model: " in warning
    assert model_of(warning).suffix == ".cpp"
    assert {"accelerator_hooks", "guard", "module"}.isdisjoint(hooked.problems)
    assert "guard.getDevice" in hooked.texts("ok")


def test_a_call_that_ends_the_process_is_a_finding_and_the_examination_goes_on(hooked):
    hooked.finds("allocator", "the call that needs it crashes", "SIGSEGV", "REGISTER_ALLOCATOR")
    assert "Graph is not supported" in hooked.texts("warning")["graph"]
    assert "operators.PrivateUse1" in hooked.texts("ok")


def test_operators_registered_from_python_are_counted(hooked):
    assert "1 from" in hooked.texts("ok")["operators.PrivateUse1"]
    hooked.finds(
        "registration.the minimal set of operators",
        "aten::empty.memory_format",
        "model: packages/openreg-ops/csrc/minimal",
    )


def test_known_gaps_can_be_ignored(tmp_path_factory):
    ignored = ("--ignore", "allocator*", "--ignore", "registration.*")
    diagnosis = examine(tmp_path_factory, RENAME + MODULE + METHODS + HOOKS, *ignored)
    assert diagnosis.code == 0
    assert diagnosis.document["healthy"] is True
    assert diagnosis.document["counts"]["ignored"] == 2


def test_a_gap_that_is_not_ignored_because_no_check_is_called_so(tmp_path_factory):
    diagnosis = examine(tmp_path_factory, RENAME + MODULE, "--ignore", "allocator*", "--ignore", "registrations.*")
    assert diagnosis.code == 1
    assert "--ignore 'registrations.*' matches no check of this report; similar checks: " in diagnosis.errors
    assert "Traceback" not in diagnosis.errors


def test_a_backend_that_raises_is_a_problem_with_its_cause(tmp_path_factory):
    diagnosis = examine(tmp_path_factory, RENAME + "raise OSError('no toaster in the kitchen')\n")
    diagnosis.finds("startup.toaster", "OSError: no toaster in the kitchen")


UNTOLD = {
    "ends the process": ("import os\nos._exit(0)\n", "status 0 before it had finished"),
    "raises what has no text": (
        "class Untold(Exception):\n    def __str__(self): raise ValueError\nraise Untold\n",
        "Untold: its message cannot be read",
    ),
    "raises its own cause": (
        "first, second = OSError(1), OSError(2)\nfirst.__cause__ = second\nsecond.__cause__ = first\nraise first\n",
        "OSError: 1 <- OSError: 2",
    ),
}


@pytest.mark.parametrize("how", UNTOLD)
def test_a_backend_that_fails_without_telling_is_a_problem_too(tmp_path_factory, how):
    code, text = UNTOLD[how]
    examine(tmp_path_factory, RENAME + code).finds("startup.toaster", text)


def test_an_import_that_brings_up_another_device_is_wrong_use(tmp_path_factory):
    diagnosis = examine(tmp_path_factory, RENAME.replace("toaster", "kettle"))
    assert diagnosis.code == 2
    assert "no device 'toaster'" in diagnosis.errors
    assert "called 'kettle'" in diagnosis.errors


def test_an_operator_of_another_backend(tmp_path_factory):
    diagnosis = examine(tmp_path_factory, RENAME + MODULE + HOOKS + OPERATORS, "--op", "aten::abs")
    facts = {fact["aspect"]: fact["text"] for fact in diagnosis.document["operator"]["facts"]}
    assert facts["toaster"].startswith("native: a kernel for PrivateUse1, registered at")
    assert "toaster.py" in facts["toaster"]
    assert facts["autocast"] == "no rules for this backend"


def test_a_structured_operator_is_native_through_its_out_overload(tmp_path_factory):
    code = 'library.impl("hypot.out", lambda a, b, out: out, "PrivateUse1")\n'
    diagnosis = examine(tmp_path_factory, RENAME + MODULE + HOOKS + OPERATORS + code, "--op", "aten::hypot")
    facts = {fact["aspect"]: fact["text"] for fact in diagnosis.document["operator"]["facts"]}
    assert facts["toaster"].startswith("native through aten::hypot.out, of which PyTorch makes it, ")


def test_an_operator_that_does_not_exist_is_wrong_use_with_suggestions(tmp_path_factory):
    diagnosis = examine(tmp_path_factory, RENAME + MODULE, "--op", "aten::ad.Tensor")
    assert diagnosis.code == 2
    assert "there is no operator 'aten::ad.Tensor'; similar operators: " in diagnosis.errors
    assert "aten::add.Tensor" in diagnosis.errors


RULES = """
library.impl("mm", lambda a, b: a, "AutogradPrivateUse1")  # what is in the way of the doctor's own
rules = torch.library.Library("aten", "IMPL")

@torch.library.impl(rules, "mm", "AutocastPrivateUse1")
def mm(a, b):
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)):
        return torch.ops.aten.mm(a.half(), b.half())

@torch.library.impl(rules, "exp", "AutocastPrivateUse1")
def exp(tensor):
    raise ValueError("too hot to toast")
"""


CAST, REFUSED = ("mm", "lower precision: "), ("exp", "refused: ValueError: too hot to toast, ")


@pytest.mark.parametrize(
    ("parts", "operator", "rule"),
    [
        pytest.param(MODULE + HOOKS, *CAST, id="hooks-cast"),
        pytest.param(MODULE, *CAST, id="module-cast"),
        pytest.param("", *CAST, id="name-cast"),
        pytest.param(MODULE + HOOKS, *REFUSED, id="hooks-refused"),
        pytest.param(MODULE, *REFUSED, id="module-refused", marks=pytest.mark.endurance),
        pytest.param("", *REFUSED, id="name-refused", marks=pytest.mark.endurance),
    ],
)
def test_a_rule_for_autocast_of_another_backend(tmp_path_factory, parts, operator, rule):
    diagnosis = examine(tmp_path_factory, RENAME + parts + OPERATORS + RULES, "--op", operator)
    facts = {fact["aspect"]: fact["text"] for fact in diagnosis.document["operator"]["facts"]}
    assert facts["autocast"].startswith(rule), facts
    assert "toaster.py" in facts["autocast"]


def test_a_backend_is_found_without_its_name(tmp_path_factory):
    installation = Installation(tmp_path_factory.mktemp("found") / "site")
    (installation.folder / "toaster.py").write_text(RENAME + MODULE, "utf-8")
    diagnosis = installation.doctor("--import", "toaster")
    assert diagnosis.document["device"] == "toaster"
    assert "module.is_available" in diagnosis.texts("ok")
    diagnosis.finds("guard", "not linked with support for toaster")


def test_a_backend_that_loads_with_torch_is_found(tmp_path_factory):
    installation = Installation(tmp_path_factory.mktemp("loaded") / "site")
    code = "def load():\n    import toaster_parts\n"
    (installation.folder / "toaster.py").write_text(code, "utf-8")
    (installation.folder / "toaster_parts.py").write_text(RENAME + MODULE, "utf-8")
    installation.announce("a-toaster", "torch.backends", "toaster = toaster:load")
    diagnosis = installation.doctor(fresh=True)  # each child as users have it
    assert diagnosis.document["device"] == "toaster"
    assert diagnosis.texts("ok")["autoload.device"].startswith("import torch loads toaster")
    assert (
        "torch.accelerator is toaster: a backend for PrivateUse1 goes before"
        in (diagnosis.texts("ok")["autoload.accelerator"])
    )
    assert "startup.toaster" not in diagnosis.output


@pytest.mark.parametrize("arguments", [(), ("--device", "privateuseone")], ids=["sought", "named"])
def test_a_backend_that_gave_itself_no_name(tmp_path_factory, arguments):
    installation = Installation(tmp_path_factory.mktemp("unnamed") / "site")
    code = RENAME.partition("torch.utils")[0] + OPERATORS
    (installation.folder / "unnamed.py").write_text(code, "utf-8")
    diagnosis = installation.doctor("--import", "unnamed", *arguments)
    assert diagnosis.document["device"] == "privateuseone"
    diagnosis.finds("module", "torch.privateuseone does not exist")
    assert "1 from" in diagnosis.texts("ok")["operators.PrivateUse1"]
    assert "autoload.device" not in diagnosis.problems


def test_where_no_backend_is_installed_it_is_said_and_the_rest_is_examined(tmp_path):
    diagnosis = Installation(tmp_path / "site").doctor()
    diagnosis.finds("autoload.device", "no backend for PrivateUse1 is loaded", "--import MODULE")
    assert set(diagnosis.problems) == {"autoload.device"}
    assert {"environment.python", "environment.torch", "pytorch"} <= set(diagnosis.texts("ok"))


@pytest.mark.parametrize("device", ["privateuseone", "toaster"])
def test_a_backend_that_is_not_there_is_wrong_use(tmp_path, device):
    diagnosis = Installation(tmp_path / "site").doctor("--device", device)
    assert (diagnosis.code, diagnosis.output) == (2, "")
    assert f"there is no device '{device}': after `import torch`, no PrivateUse1 backend is loaded" in diagnosis.errors
    assert "Traceback" not in diagnosis.errors


def test_where_torch_is_missing_it_is_said(tmp_path):
    installation = Installation(tmp_path / "site")
    (installation.folder / "torch").unlink()
    diagnosis = installation.doctor(fresh=True)
    diagnosis.finds("environment.torch", "No module named 'torch'", "pip install --force-reinstall 'torch'")
    assert set(diagnosis.problems) == {"environment.torch"}
