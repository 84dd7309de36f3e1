# SPDX-License-Identifier: BSD-3-Clause
"""Every operator that the CPU has for sparse tensors gives its results or exceptions, for each layout."""

import pytest
import sparse_samples
import torch
from parity import DEVICE
from sparse_samples import COMPRESSED, COO, CPU_KEYS

pytestmark = [
    pytest.mark.no_fallback,
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

OPERATORS = [
    (key, name)
    for key in (COO, COMPRESSED)
    for name in sparse_samples.registered(CPU_KEYS[key])
    if name not in sparse_samples.NOT_OF_A_DEVICE
]
DTYPES = (torch.float32, torch.int64, torch.complex64, torch.bfloat16, torch.bool)

# What PyTorch does to the CPU's memory in these cases, the device refuses: test_sparse_errors.py.
CORRUPTS = {
    ("csr batch", "add.out"),
    ("csr batch", "add.Tensor"),
    ("csr batch", "add_.Tensor"),
    ("csr hybrid", "add.out"),
    ("csr hybrid", "add.Tensor"),
    ("csr hybrid", "add_.Tensor"),
    ("csc square", "addmm"),
}
# The CPU's kernels refuse bool, ours do not. A GPU has the sampled product of bfloat16 since torch 2.15.
MORE_DTYPES = {
    *((name, torch.bool) for name in ("abs", "abs.out", "abs_", "mul.Tensor")),
    *((name, torch.bfloat16) for name in ("sparse_sampled_addmm", "sparse_sampled_addmm.out")),
}


def outcome(call):
    try:
        return sparse_samples.flat(call()), None
    except Exception as error:
        return None, error


def assert_alike(ours, theirs, *, values=True):
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        if not isinstance(other, torch.Tensor):
            assert one == other
            continue
        assert one.device.type == DEVICE
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        if values:
            torch.testing.assert_close(one.cpu(), other, equal_nan=True)


@pytest.mark.covers(
    "registration.kernels of SparsePrivateUse1",
    "registration.kernels of SparseCsrPrivateUse1",
    "registration.at::native::flatten_indices_stub",
)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("key", "name"), OPERATORS)
def test_an_operator_gives_what_the_cpu_gives(key, name, dtype):
    for kind in sparse_samples.KINDS:
        if kind.startswith("coo") != (key == COO) or (kind, name) in CORRUPTS:
            continue
        tensor = sparse_samples.sample(kind, dtype)
        pairs = zip(calls(name, tensor.to(DEVICE)), calls(name, tensor), strict=True)
        for ours, theirs in pairs:
            expected, refusal = outcome(theirs)
            found, error = outcome(ours)
            torch.openreg.synchronize()
            if refusal is not None and (name, dtype) in MORE_DTYPES:
                continue
            assert type(error) is type(refusal), (kind, error, refusal)
            if refusal is None:
                assert_alike(found, expected, values=name not in sparse_samples.UNDEFINED)


def calls(name, tensor):
    """Those that can be made; where the arguments themselves cannot be computed on such a tensor, there are none."""
    try:
        return list(sparse_samples.calls_of(name, tensor))
    except (RuntimeError, IndexError, NotImplementedError):
        return []
