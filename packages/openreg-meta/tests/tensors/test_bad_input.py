# SPDX-License-Identifier: BSD-3-Clause
"""Wrong input raises one error that names the cause and the fix, and the process keeps working."""

import gc

import pytest
import torch

# The release of torch that the wheels are compiled for, as "2.13".
RELEASE = ".".join(torch.__version__.split(".")[:2])
OFF = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


@pytest.fixture(autouse=True)
def usable_afterwards():
    yield
    x = torch.arange(4.0, device="openreg")
    assert (x * 2).sum().item() == 12
    torch.openreg.synchronize()


def names(error, *parts):
    message = str(error.value)
    missing = [part for part in parts if part not in message]
    assert not missing, message


def test_an_unknown_device_index():
    with pytest.raises(RuntimeError) as error:
        torch.ones(2, device="openreg:7")
    names(error, "The device index is out of range", "7")


@pytest.mark.parametrize("index", [-2, 127, 128, 300], ids=str)
def test_indices_that_do_not_fit(index):
    with pytest.raises((RuntimeError, ValueError)):
        torch.ones(2, device=f"openreg:{index}")


@pytest.mark.parametrize(
    "operation",
    [
        lambda ours, theirs: ours + theirs,
        lambda ours, theirs: theirs + ours,
        lambda ours, theirs: ours @ theirs,
        lambda ours, theirs: ours.add_(theirs),
        lambda ours, theirs: torch.add(theirs, theirs, out=ours),
        lambda ours, theirs: torch.where(theirs > 0, ours, ours),
        lambda ours, theirs: torch.nn.functional.linear(ours, theirs),
    ],
    ids=["add", "radd", "mm", "add_", "out", "where", "linear"],
)
@pytest.mark.parametrize("other", ["cpu", "openreg:1"])
def test_operands_on_different_devices(operation, other):
    ours, theirs = torch.ones(2, 2, device="openreg:0"), torch.ones(2, 2, device=other)
    with pytest.raises(RuntimeError) as error:
        operation(ours, theirs)
    names(error, "device", "openreg:0", other)


@pytest.mark.filterwarnings("ignore:Sparse")
def test_a_layout_that_the_device_or_the_operator_does_not_have():
    for make in (torch.Tensor.to_mkldnn, lambda x: torch.empty_like(x, layout=torch._mkldnn)):
        with pytest.raises(RuntimeError, match="mkldnn") as error:
            make(torch.ones(2, 2, device="openreg"))
        names(error, "openreg")
    with pytest.raises(NotImplementedError) as error:
        torch.eye(2, device="openreg").to_sparse().exp()
    names(error, "aten::exp", "sparse", "openreg", "to_dense")


def test_numpy_needs_a_copy():
    with pytest.raises(TypeError) as error:
        torch.ones(2, device="openreg").numpy()
    names(error, "openreg", "Tensor.cpu()")


def refused(python, preparation):
    """The message of `import torch_openreg` after some preparation, in a process that goes on."""
    result = python(
        f"import torch\n{preparation}\n"
        "try:\n"
        "    import torch_openreg\n"
        "except ImportError as error:\n"
        "    print(error)\n"
        "print(torch.ones(3).sum().item(), hasattr(torch, 'openreg'))",
        **OFF,
    )
    message, state = result.stdout.splitlines()
    assert state == "3.0 False", result.stderr
    return message


def test_a_torch_of_another_minor_version(python):
    message = refused(python, "torch.__version__ = '2.99.1+cpu'")
    for part in ("2.99.1+cpu", f"torch {RELEASE}.*", "pip install", "openreg-runtime"):
        assert part in message


def test_another_privateuse1_backend_in_the_process(python):
    message = refused(python, "torch.utils.rename_privateuse1_backend('abacus')")
    for part in ("'abacus'", "one PrivateUse1 backend", "TORCH_DEVICE_BACKEND_AUTOLOAD=0"):
        assert part in message


def test_a_missing_sibling_package(python):
    result = python(
        "import torch, openreg_runtime\n"
        "for use in (\n"
        "    lambda: torch.ones(2, device='openreg'),\n"
        "    lambda: torch.autocast('openreg'),\n"
        "    lambda: torch.openreg.fallback_stats(),\n"
        "):\n"
        "    try:\n"
        "        use()\n"
        "    except (RuntimeError, AttributeError) as error:\n"
        "        print(error)\n"
        "print(torch.openreg.device_count())",
        **OFF,
    )
    tensor, autocast, fallback, usable = result.stdout.splitlines()
    assert "pip install openreg-ops" in tensor
    assert "pip install openreg-amp" in autocast
    assert "pip install openreg-ops" in fallback
    assert usable == "2"


def test_a_kernel_that_fails_is_reported_once_and_the_device_can_be_reset():
    values = torch.zeros(3, device="openreg")
    index = torch.tensor([99], device="openreg")
    with pytest.raises((RuntimeError, IndexError)) as error:
        torch.gather(values, 0, index).cpu()
    names(error, "gather")
    torch.openreg.reset_device()


def test_out_of_memory_is_torchs_error_and_nothing_is_lost():
    gc.collect()  # what earlier tests left in reference cycles
    before = torch.openreg.memory_allocated()
    _, total = torch.openreg.mem_get_info()
    with pytest.raises(torch.OutOfMemoryError) as error:
        torch.empty(total + 1, dtype=torch.uint8, device="openreg")
    names(error, "openreg:0", "OPENREG_DEVICE_MEMORY")
    assert torch.openreg.memory_allocated() == before
