# SPDX-License-Identifier: BSD-3-Clause
"""torch.compile, torch.export and fake tensors work with the compiler backends that generate no code."""

import json
from importlib.metadata import version

import pytest
import torch
from torch._dynamo.device_interface import DeviceInterface, get_interface_for_device
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

# The compiler imports parts of PyTorch that are deprecated, and says once where it breaks a graph.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit.:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace:UserWarning"),
]

BACKENDS = ["eager", "aot_eager"]


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
    torch.openreg.set_stream(torch.openreg.default_stream(0))
    torch.openreg.set_device(0)


@pytest.mark.covers("registration.backends eager and aot_eager")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_module_computes_and_learns_the_same(backend):
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 1)).to("openreg")
    x = torch.randn(6, 4, device="openreg")
    module(x).sum().backward()
    expected = [parameter.grad.clone() for parameter in module.parameters()]
    module.zero_grad()
    compiled = torch.compile(module, backend=backend, fullgraph=True)
    torch.testing.assert_close(compiled(x), module(x))
    compiled(x).sum().backward()
    torch.testing.assert_close([parameter.grad for parameter in module.parameters()], expected)


@pytest.mark.covers("device_interface.current_stream")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_compiled_function_keeps_its_stream(backend):
    stream = torch.openreg.Stream()

    def function(x):
        with torch.openreg.stream(stream):
            return x + 1

    x = torch.ones(3, device="openreg")
    torch.openreg.synchronize()
    launches = torch.openreg.stream_stats(stream).launches
    result = torch.compile(function, backend=backend)(x)
    torch.openreg.synchronize()
    assert result.cpu().tolist() == [2, 2, 2]
    assert torch.openreg.stream_stats(stream).launches > launches


@pytest.mark.covers("device_interface.is_gpu")
def test_the_device_is_no_gpu_for_the_compiler():
    assert not get_interface_for_device("openreg").is_gpu()


@pytest.mark.covers("device_interface.get_cache_system_info")
def test_the_key_of_the_compilers_cache_names_the_packages_and_their_versions():
    found = json.loads(json.dumps(get_interface_for_device("openreg").get_cache_system_info()))
    assert found["openreg-runtime"] == version("openreg-runtime")
    assert found["openreg-ops"] == version("openreg-ops")


@pytest.mark.skipif(not hasattr(DeviceInterface, "exposes_streams"), reason="the compiler asks this since torch 2.15")
def test_what_the_compilers_base_class_finds_since_torch_2_15():
    interface = get_interface_for_device("openreg")
    assert interface.exposes_streams()
    assert interface.get_multi_processor_count() == torch.openreg.get_device_properties().multi_processor_count
    assert interface.get_cpp_device_options(aot_mode=False, compile_only=False) is None


@pytest.mark.covers("device_interface.Event")
def test_events_are_part_of_the_graph():
    def function(x):
        event = torch.openreg.Event()
        event.record()
        y = x + 1
        event.wait()
        return y

    compiled = torch.compile(function, backend="eager", fullgraph=True)
    assert compiled(torch.ones(2, device="openreg")).cpu().tolist() == [2, 2]


@pytest.mark.covers("module.is_available")
def test_the_number_of_devices_is_a_constant_of_the_graph():
    def function(x):
        return x + torch.openreg.device_count() if torch.openreg.is_available() else x

    compiled = torch.compile(function, backend="eager", fullgraph=True)
    assert compiled(torch.ones(2, device="openreg")).cpu().tolist() == [3, 3]


@pytest.mark.covers("device_interface.current_device")
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + torch.openreg.current_device(),
        lambda x: x + torch.openreg.current_stream().device_index,
    ],
    ids=["device", "stream"],
)
def test_what_may_change_breaks_the_graph_and_is_right(function):
    compiled = torch.compile(function, backend="eager")
    x = torch.ones(2, device="openreg")
    assert compiled(x).cpu().tolist() == [1, 1]
    with torch.openreg.device(1):
        assert compiled(x).cpu().tolist() == [2, 2]


@pytest.mark.covers(
    "module.default_generators",
    "module._get_generator",
    "generator.graphsafe_set_state",
    "generator.graphsafe_get_state",
    "registration.register_graphsafe_rng_device_type",
)
@pytest.mark.parametrize("backend", ["aot_eager", "aot_eager_decomp_partition"])
def test_a_compiled_checkpoint_draws_the_same_numbers_again(backend):
    def function(x):
        return checkpoint(lambda y: functional.dropout(y).sin(), x, use_reentrant=False)

    compiled = torch.compile(function, backend=backend, fullgraph=True)
    for _ in range(2):
        x = torch.ones(1000, device="openreg", requires_grad=True)
        y = compiled(x)
        y.sum().backward()
        assert 300 < (y == 0).sum().item() < 700
        assert torch.equal((y == 0).cpu(), (x.grad == 0).cpu())


@pytest.mark.covers(
    "module.is_bf16_supported",
    "device_interface.Stream",
    "device_interface.exchange_device",
    "device_interface.Worker.set_device",
)
def test_the_compiler_knows_the_device():
    for name in ("openreg", "openreg:0", "openreg:1", torch.device("openreg")):
        interface = get_interface_for_device(name)
        assert interface.is_available()
    assert interface.device_count() == 2
    assert issubclass(interface.Stream, torch.Stream)
    assert issubclass(interface.Event, torch.Event)
    assert interface.Worker.get_device_properties(1).name == torch.openreg.get_device_name(1)
    interface.Worker.set_device(1)
    assert interface.current_device() == interface.Worker.current_device() == 1
    assert interface.exchange_device(0) == 1
    assert interface.maybe_exchange_device(-1) == 0
    with interface.device(1):
        stream = interface.Stream()
        interface._set_stream_by_id(stream.stream_id, stream.device_index, stream.device_type)
        assert interface.current_stream() == stream
        assert interface.get_raw_stream(1) == stream.native_handle
        interface.set_stream(torch.openreg.default_stream(1))
        with interface.stream(stream):
            assert interface.current_stream() == stream
        interface.synchronize()
    assert interface.memory_allocated(0) == torch.openreg.memory_allocated(0)
    assert interface.get_compute_capability(0) == torch.openreg.get_device_properties(0)[-2:]
    assert interface.is_bf16_supported()
    assert interface.is_dtype_supported(torch.float32)
    assert interface.is_dtype_supported(torch.quint8)
    assert not interface.is_dtype_supported(torch.bits8)
    assert not interface.is_triton_capable()


@pytest.mark.covers("device_interface.register_interface_for_device")
def test_importing_the_package_leaves_the_compiler_alone(python):
    result = python(
        """
import sys, torch, torch_openreg
assert "torch._dynamo" not in sys.modules
import torch._dynamo
from torch._dynamo.device_interface import get_interface_for_device
assert get_interface_for_device("openreg").__name__ == "OpenregInterface"
assert type(torch._dynamo.__spec__) is type(sys.__spec__)
""",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.covers("device_interface.register_interface_for_device")
@pytest.mark.parametrize("first", ["torch._dynamo", "torch._inductor.utils"])
def test_the_device_is_registered_when_inductor_has_read_the_registry(python, first):
    result = python(
        f"""
import importlib, sys, torch, torch_openreg, openreg_runtime

def show(utils):
    print("openreg" in sys.modules["torch._dynamo.device_interface"].device_interfaces)

openreg_runtime.after_import("torch._inductor.utils", show)
importlib.import_module({first!r})
import torch._inductor.utils
""",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert result.stdout == "True\n", result.stderr


@pytest.mark.covers("device_interface.register_interface_for_device", "registration.register_graphsafe_rng_device_type")
def test_the_compiler_may_be_imported_first(python_with_dynamo):
    result = python_with_dynamo(
        """
import torch, torch._dynamo, torch._functorch._aot_autograd.utils as utils, torch_openreg
from torch._dynamo.device_interface import get_interface_for_device
assert get_interface_for_device("openreg:1").is_available()
assert utils.supports_graphsafe_rng(torch.device("openreg"))
assert not torch.openreg.is_initialized()
""",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.covers("registration.torch.export")
def test_a_program_is_exported_for_the_device():
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()).to("openreg")
    x = torch.randn(4, 3, device="openreg")
    program = torch.export.export(module, (x,))
    torch.testing.assert_close(program.module()(x), module(x))


@pytest.mark.covers("module.current_device", "module.is_initialized")
def test_fake_tensors_take_the_current_device():
    before = torch.openreg.memory_stats(1)["allocation.all.allocated"]
    with FakeTensorMode(), torch.openreg.device(1):
        x = torch.empty(3, 4, device="openreg")
        assert x.device == torch.device("openreg:1")
        assert (x @ x.t()).shape == (3, 3)
    assert torch.openreg.memory_stats(1)["allocation.all.allocated"] == before


# Inductor, the default backend, which generates code.

FUNCTIONS = {
    "pointwise": lambda x: x + 1,
    "reduction": lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]).relu(),
    "product": lambda x: x @ x.t(),
    "random": lambda x: functional.dropout(x),
    "to the host": lambda x: x.cpu() + 1,
    "from the host": lambda x: x.cpu().to("openreg") + 1,
}


@pytest.mark.covers("registration.register_backend_for_device")
@pytest.mark.parametrize(
    ("name", "mode"),
    [*((name, None) for name in FUNCTIONS), ("pointwise", "reduce-overhead"), ("pointwise", "max-autotune")],
)
def test_the_default_backend_names_the_package_that_is_missing(name, mode):
    x = torch.ones(3, 3, device="openreg")
    with pytest.raises(Exception, match="pip install openreg-compile") as caught:
        torch.compile(FUNCTIONS[name], mode=mode)(x)
    text = str(caught.value)
    assert text.startswith("NotImplementedError: code for openreg devices")
    assert 'backend="aot_eager"' in text
    assert 'backend="eager"' in text
    assert "target: aten" not in text  # nothing of Inductor's own graph
    torch._dynamo.reset()
    for backend in BACKENDS:
        assert torch.compile(FUNCTIONS[name], backend=backend)(x).shape == (3, 3)


@pytest.mark.skipif(" " in torch.__file__, reason="PyTorch's compiler does not quote the linker's paths")
def test_the_default_backend_goes_on_working_for_the_host():
    compiled = torch.compile(lambda x: (x + 1).sin(), fullgraph=True)
    x = torch.arange(4.0)
    torch.testing.assert_close(compiled(x), (x + 1).sin())


def test_a_training_step_names_the_package_too():
    module = torch.nn.Linear(3, 3).to("openreg")
    with pytest.raises(Exception, match="pip install openreg-compile"):
        torch.compile(module)(torch.ones(2, 3, device="openreg")).sum().backward()


COMPILER_OF_A_PACKAGE = """
import sys
{before}
import torch, torch_openreg
import torch._inductor.codegen.common as registry
{after}
registry.init_backend_registration()
print(registry.get_scheduling_for_device("openreg"), registry.get_custom_backend_pass_for_device("openreg"))
"""

REGISTER = "registry.register_backend_for_device('openreg', 'scheduling', 'wrapper', 'cpp wrapper')"


@pytest.mark.covers("registration.register_backend_for_device")
@pytest.mark.parametrize("installed", [pytest.param(False, marks=pytest.mark.endurance), True])
def test_a_package_that_generates_code_is_left_alone(python_with_dynamo, bring, installed):
    if installed:
        bring("compile")
    code = COMPILER_OF_A_PACKAGE.format(before="sys.path.insert(0, '.')", after=REGISTER)
    result = python_with_dynamo(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert result.stdout == "scheduling None\n", result.stderr
    code = COMPILER_OF_A_PACKAGE.format(before="sys.path.insert(0, '.')", after="")
    result = python_with_dynamo(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    refused = not result.stdout.startswith("None None")
    assert refused is not installed, (result.stdout, result.stderr)


def test_inductor_may_be_imported_first(python_with_dynamo):
    result = python_with_dynamo(
        """
import torch, torch._inductor.codegen.common as registry, torch_openreg
assert registry.get_custom_backend_pass_for_device("openreg").uuid() == "openreg without a code generator"
""",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert result.returncode == 0, result.stderr
