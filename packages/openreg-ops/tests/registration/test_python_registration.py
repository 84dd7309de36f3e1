# SPDX-License-Identifier: BSD-3-Clause
"""Operators can be registered for the device from Python with torch.library; compare examples/openreg-ops-python.py."""

import os
import threading
import uuid
import warnings

import pytest
import torch
from parity import DEVICE, is_busy
from torch.library import Library, custom_op, fallthrough_kernel


@pytest.fixture
def library():
    """Makes libraries that end with the test: (namespace, kind) to Library."""
    made = []

    def make(namespace, kind):
        made.append(Library(namespace, kind))
        return made[-1]

    yield make
    for one in made:
        one._destroy()


@pytest.fixture
def name():
    """A namespace of this test alone."""
    return f"openreg_test_{uuid.uuid4().hex}"


# impl


def test_a_kernel_in_python_launches_and_does_not_wait(library, name, gate):
    defined = library(name, "DEF")
    defined.define("double(Tensor x) -> Tensor")
    defined.impl("double", lambda x: x + x, "PrivateUse1")
    double = getattr(torch.ops, name).double
    x = torch.arange(3.0, device=DEVICE)
    assert double(x).tolist() == [0, 2, 4]
    gate.close()
    double(x)
    assert is_busy()
    gate.open()
    assert torch.openreg.fallback_stats() == {}


def test_an_error_of_a_kernel_in_python_comes_on_the_calling_line(library, name):
    def fail(x):
        raise KeyError("no such thing")

    defined = library(name, "DEF")
    defined.define("fail(Tensor x) -> Tensor")
    defined.impl("fail", fail, "PrivateUse1")
    with pytest.raises(KeyError, match="no such thing"):
        getattr(torch.ops, name).fail(torch.ones(2, device=DEVICE))


@pytest.mark.filterwarnings("ignore:Warning only once for all operators")  # by PyTorch, in the first test that does it
def test_a_kernel_in_python_takes_the_place_of_ours_while_its_library_lives(library):
    x = torch.ones(3, device=DEVICE)
    ours = library("aten", "IMPL")
    ours.impl("relu", lambda x: x.new_full((3,), 7), "PrivateUse1", allow_override=True)
    assert torch.relu(x).tolist() == [7, 7, 7]
    ours._destroy()
    assert torch.relu(x).tolist() == [1, 1, 1]


# Overriding a composite operator


def test_a_composite_operator_overridden_in_python(library):
    def one_launch(x):
        return x.mul(x)

    x = torch.arange(3.0, device=DEVICE)
    ours = library("aten", "IMPL")
    ours.impl("square", one_launch, "PrivateUse1")
    ours.impl("square", one_launch, "AutogradPrivateUse1")
    assert torch.square(x).tolist() == [0, 1, 4]
    y = x.clone().requires_grad_()
    result = torch.square(y)
    assert result.grad_fn.name() == "MulBackward0"
    result.sum().backward()
    assert y.grad.tolist() == [0, 2, 4]
    ours._destroy()
    assert torch.square(y).grad_fn.name() == "PowBackward0"


# Adding to a namespace that exists


def test_an_operator_added_to_pytorchs_own_namespace(library):
    more = library("aten", "FRAGMENT")
    more.define("_openreg_test_range(Tensor x) -> Tensor")
    more.impl("_openreg_test_range", lambda x: x.amax() - x.amin(), "PrivateUse1")
    more.impl("_openreg_test_range", lambda x: x.new_empty(()), "Meta")
    x = torch.arange(4.0, device=DEVICE)
    assert torch.ops.aten._openreg_test_range(x).item() == 3
    assert torch.ops.aten._openreg_test_range(x.to("meta")).shape == ()


def test_an_operator_added_to_ours(library):
    more = library("openreg", "FRAGMENT")
    more.define("test_twice(Tensor x) -> Tensor")
    more.impl("test_twice", lambda x: x * 2, "PrivateUse1")
    assert torch.ops.openreg.test_twice(torch.ones(2, device=DEVICE)).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="openreg"):
        library("openreg", "FRAGMENT").define("swiglu(Tensor gate, Tensor up) -> Tensor")  # ours has it


# fallthrough and fallback


@pytest.mark.parametrize("falls_through", [True, False])
def test_a_fallthrough_lets_a_call_pass_autograd(library, name, falls_through):
    defined = library(name, "DEF")
    defined.define("doubled(Tensor x) -> Tensor")
    defined.impl("doubled", lambda x: x.detach() * 2, "PrivateUse1")
    if falls_through:
        defined.impl("doubled", fallthrough_kernel, "AutogradPrivateUse1")
    y = getattr(torch.ops, name).doubled(torch.ones(2, device=DEVICE, requires_grad=True))
    # Without it PyTorch attaches a node that will warn of the missing derivative.
    assert y.requires_grad is not falls_through
    assert y.tolist() == [2, 2]


def test_the_fallback_of_the_device_exists_once(library):
    with pytest.raises(RuntimeError, match="PrivateUse1"):
        library("_", "IMPL").fallback(lambda op, *args: None, "PrivateUse1")
    with pytest.raises(RuntimeError, match='"_"'):
        library("aten", "IMPL").fallback(lambda op, *args: None, "PrivateUse1")


def test_a_fallback_in_python_for_one_key(library):
    seen = []

    def report(op, *args, **kwargs):
        seen.append(str(op))
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            return op(*args, **kwargs)

    key = torch._C._dispatch_key_parse("TESTING_ONLY_GenericMode")  # one that PyTorch leaves to experiments
    library("_", "IMPL").fallback(report, "TESTING_ONLY_GenericMode")
    x = torch.ones(2, device=DEVICE)
    with torch._C._IncludeDispatchKeyGuard(key):
        y = torch.add(x, 1)
    assert seen == ["aten.add.Tensor"]
    assert y.tolist() == [2, 2]


def test_a_fallback_in_python_for_one_namespace(library, name):
    cpu_only = library(name, "DEF")
    for schema in ("halve(Tensor x) -> Tensor", "negate(Tensor x) -> Tensor"):
        cpu_only.define(schema)
    cpu_only.impl("halve", lambda x: x / 2, "CPU")
    cpu_only.impl("negate", lambda x: -x, "CPU")
    seen = []

    def by_copy(operator):
        def call(x):
            seen.append(operator._schema.name.split("::")[1])
            return operator(x.cpu()).to(x.device)

        return call

    ours = library(name, "IMPL")
    for operator in ("halve", "negate"):
        ours.impl(operator, by_copy(getattr(getattr(torch.ops, name), operator).default), "PrivateUse1")
    x = torch.ones(2, device=DEVICE)
    y = getattr(torch.ops, name).negate(getattr(torch.ops, name).halve(x))
    assert (y.device.type, y.tolist(), seen) == (DEVICE, [-0.5, -0.5], ["halve", "negate"])
    assert torch.openreg.fallback_stats() == {}


# custom_op


@pytest.fixture
def cube(name):
    """A custom operator with all that PyTorch may ask of it."""

    @custom_op(f"{name}::cube", mutates_args=(), device_types=DEVICE)
    def cube(x: torch.Tensor) -> torch.Tensor:
        return x * x * x

    cube.register_fake(torch.empty_like)
    cube.register_autograd(
        lambda ctx, grad: 3 * ctx.saved_tensors[0].square() * grad,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    cube.register_vmap(lambda info, in_dims, x: (cube(x), in_dims[0]))
    yield cube
    cube._lib._destroy()


def test_a_custom_operator_and_its_gradient(cube):
    x = torch.arange(3.0, dtype=torch.float64).to(DEVICE).requires_grad_()
    assert torch.autograd.gradcheck(cube, (x,))
    y = cube(x)
    threads = []
    y.register_hook(lambda grad: threads.append(threading.get_ident()))
    y.sum().backward()
    assert x.grad.tolist() == [0, 3, 12]
    assert threads


@pytest.mark.filterwarnings("ignore:.*torch.jit.:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # PyTorch's own, since 2.14
def test_a_custom_operator_passes_pytorchs_checks_and_batches(cube):
    x = torch.arange(6.0).to(DEVICE).view(2, 3).requires_grad_()
    checks = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")  # the fourth knows PyTorch's devices only
    torch.library.opcheck(cube, (x,), test_utils=checks)
    assert torch.vmap(cube)(x).tolist() == [[0, 1, 8], [27, 64, 125]]


def test_a_custom_operator_runs_on_the_current_stream(cube):
    x = torch.ones(3, device=DEVICE)
    stream = torch.openreg.Stream()
    torch.openreg.synchronize()  # launches count when they have run
    elsewhere = torch.openreg.stream_stats()
    with torch.openreg.stream(stream):
        cube(x)
    torch.openreg.synchronize()
    assert torch.openreg.stream_stats(stream).launches > 0
    assert torch.openreg.stream_stats() == elsewhere


def test_a_custom_operator_of_this_device_is_refused_elsewhere(cube):
    with pytest.raises(NotImplementedError, match="cube"):
        cube(torch.ones(2))


def test_a_kernel_for_the_device_of_an_operator_that_has_another(name):
    @custom_op(f"{name}::half", mutates_args=(), device_types="cpu")
    def half(x: torch.Tensor) -> torch.Tensor:
        return x / 2

    @half.register_kernel(DEVICE)
    def _(x):
        return x * 0.5

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert half(torch.ones(2, device=DEVICE)).tolist() == [0.5, 0.5]
        assert half(torch.ones(2)).tolist() == [0.5, 0.5]
        assert torch.openreg.fallback_stats() == {}
    finally:
        half._lib._destroy()


def test_an_operator_that_writes_into_its_operand(name):
    @custom_op(f"{name}::grow", mutates_args={"x"}, device_types=DEVICE)
    def grow(x: torch.Tensor) -> None:
        x.add_(1)

    try:
        x = torch.zeros(3, device=DEVICE)
        before = x._version
        grow(x)
        assert x.tolist() == [1, 1, 1]
        assert x._version > before
    finally:
        grow._lib._destroy()


# Those of this package

AFTER_IMPORT = """
import sys, torch
assert "openreg_ops.functional" in sys.modules
x, angles = torch.ones(2, device="openreg"), torch.zeros(1, device="openreg")
print(torch.ops.openreg.rotary_embedding(x, angles).tolist())
"""


def test_operators_of_this_package_exist_after_import_torch(run_python, tmp_path):
    """Where something starts the device with torch, as openreg-autoload does, which this session does not have."""
    plugin = tmp_path / "starts_the_device-1.0.dist-info"
    plugin.mkdir()
    (plugin / "METADATA").write_text("Metadata-Version: 2.1\nName: starts-the-device\nVersion: 1.0\n", "utf-8")
    (plugin / "entry_points.txt").write_text("[torch.backends]\nstarts = openreg_runtime:load_plugins\n", "utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    result = run_python(AFTER_IMPORT, TORCH_DEVICE_BACKEND_AUTOLOAD="1", PYTHONPATH=path)
    assert (result.stdout, result.stderr) == ("[1.0, 1.0]\n", "")
    assert run_python(AFTER_IMPORT, PYTHONPATH=path).returncode == 1  # nothing starts it


WITHOUT_OPERATOR = """
import torch
library = torch._C._dispatch_library("IMPL", "{namespace}", "PrivateUse1")
library.impl("no_such", "PrivateUse1", lambda x: x)
try:
    import openreg_ops
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize("namespace", ["openreg", "_quantized"])
def test_a_kernel_that_no_operator_will_call_is_a_mistake_of_the_import(run_python, namespace):
    result = run_python(WITHOUT_OPERATOR.format(namespace=namespace))
    assert f"declares {namespace}::no_such, which PyTorch does not have" in result.stdout, result.stderr
