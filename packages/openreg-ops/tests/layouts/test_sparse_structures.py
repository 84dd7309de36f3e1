# SPDX-License-Identifier: BSD-3-Clause
"""Random operations on random sparse tensors of any layout give the CPU's results and gradients."""

import pytest
import sparse_samples
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from parity import DEVICE
from sparse_samples import dense, flat, like, matrices, matrix_for, own_strided, places_of

pytestmark = [pytest.mark.no_fallback, pytest.mark.filterwarnings("ignore::UserWarning")]

DTYPES = (torch.float32, torch.float64, torch.int64, torch.int32, torch.complex64, torch.bfloat16, torch.bool)
SIZES = st.integers(0, 5)


@st.composite
def coo_tensors(draw, dtype):
    """Uncoalesced or not, with dense dimensions or not, also without elements or dimensions."""
    shape = tuple(draw(st.lists(SIZES, min_size=1, max_size=4)))
    sparse_dim = draw(st.integers(1, len(shape)))
    most = 9 if all(shape[:sparse_dim]) else 0
    coalesced = draw(st.booleans())
    return sparse_samples.coo(
        shape, sparse_dim, draw(st.integers(0, most)), dtype, coalesced=coalesced, seed=draw(SIZES)
    )


@st.composite
def compressed_tensors(draw, dtype):
    """Of the four layouts; with batches of equal patterns, blocks and dense dimensions."""
    blocks = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    counts = draw(st.tuples(SIZES, SIZES))
    batch = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    width = tuple(draw(st.lists(st.integers(1, 2), max_size=1)))
    layout = draw(st.sampled_from(("csr", "csc", "bsr", "bsc")))
    sizes = tuple(a * b for a, b in zip(counts, blocks, strict=True)) if layout[0] == "b" else counts
    plane = sparse_samples.numbers((*sizes, *width), dtype, draw(st.sampled_from((0.0, 0.3, 1.0))), draw(SIZES))
    x = plane.expand(*batch, *plane.shape).clone()
    options = {"dense_dim": len(width)} if width else {}
    convert = getattr(torch.Tensor, f"to_sparse_{layout}")
    return convert(x, blocks, **options) if layout[0] == "b" else convert(x, **options)


@st.composite
def sparse_tensors(draw, dtypes=DTYPES):
    dtype = draw(st.sampled_from(dtypes))
    return draw(st.one_of(coo_tensors(dtype), compressed_tensors(dtype)))


OPERATIONS = {
    "to_dense": torch.Tensor.to_dense,
    "to_sparse": torch.Tensor.to_sparse,
    "to_sparse_csr": torch.Tensor.to_sparse_csr,
    "to_sparse_csc": torch.Tensor.to_sparse_csc,
    "to_sparse_bsr": lambda x: x.to_sparse_bsr((1, 1)),
    "to_sparse_bsc": lambda x: x.to_sparse_bsc((2, 1)),
    "coalesce": torch.Tensor.coalesce,
    "transpose": lambda x: x.transpose(0, 1),
    "sin": torch.sin,
    "neg": torch.neg,
    "twice": like,
    "plus itself": lambda x: x + x,
    "minus": lambda x: x - like(x),
    "with a strided one": lambda x: own_strided(x) + x,
    "product": lambda x: x * like(x),
    "with a strided factor": lambda x: x * own_strided(x),
    "with a number": lambda x: x / 2,
    "floor": lambda x: torch.div(x, 2, rounding_mode="floor"),
    "square": lambda x: x**2,
    "sum": torch.sum,
    "sum of rows": lambda x: torch.sparse.sum(x, 0),
    "sum of columns": lambda x: x.sum(-1, keepdim=True),
    "matrix product": lambda x: x @ matrix_for(x),
    "from the left": lambda x: dense(x, 3, x.shape[0]) @ x,
    "with itself": lambda x: x @ x.t(),
    "vector product": lambda x: x @ dense(x, x.shape[-1]),
    "batched product": lambda x: torch.bmm(x, matrix_for(x)),
    "addmm": lambda x: torch.addmm(dense(x, x.shape[0], 3), x, matrix_for(x), beta=2),
    "sampled": lambda x: torch.sparse.sampled_addmm(x, *matrices(x)),
    "reduced": lambda x: torch.sparse.mm(x, matrix_for(x), "amax"),
    "softmax": lambda x: torch.sparse.softmax(x, 0),
    "softmax of rows": lambda x: torch.sparse.softmax(x, -1),
    "mask": lambda x: own_strided(x).sparse_mask(x),
    "sparse mask": lambda x: like(x).sparse_mask(x),
    "selected": lambda x: x.index_select(0, places_of(x, 0, 0)),
    "one row": lambda x: x.select(0, 0),
    "narrow": lambda x: x.narrow_copy(0, 0, 1),
    "joined": lambda x: torch.cat([x, like(x)]),
    "clone": torch.clone,
    "moved": lambda x: x.cpu().to(x.device),
    "converted": lambda x: x.to(torch.float64),
    "embedded": lambda x: torch.nn.functional.linear(dense(x, 2, x.shape[-1]), x),
}


def outcome(operation, x):
    try:
        return flat(operation(x)), None
    except Exception as error:
        return None, error


def corrupts(operation, x):
    """Where PyTorch's own kernels read or write beyond the CPU's memory: test_sparse_errors.py."""
    is_batch = x.layout != torch.sparse_coo and sparse_samples.members(x)[0].dim() > 1
    is_hybrid = x.layout != torch.sparse_coo and x.dense_dim() > 0
    return (is_batch and operation in ("minus", "plus itself")) or (is_hybrid and operation == "with a strided one")


def assert_alike(ours, theirs, context):
    assert len(ours) == len(theirs), context
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(other, torch.Tensor):
            torch.testing.assert_close(one.cpu(), other, equal_nan=True, msg=lambda text: f"{context}: {text}")
        else:
            assert one == other, context


SETTINGS = settings(
    deadline=None,
    max_examples=150,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@SETTINGS
@given(x=sparse_tensors(), operation=st.sampled_from(sorted(OPERATIONS)))
def test_results(x, operation):
    assume(not corrupts(operation, x))
    theirs, refusal = outcome(OPERATIONS[operation], x)
    ours, error = outcome(OPERATIONS[operation], x.to(DEVICE))
    torch.openreg.synchronize()
    assert type(error) is type(refusal), (operation, x, error, refusal)
    if refusal is None:
        assert_alike(ours, theirs, f"{operation} of {x}")


def gradient(operation, x):
    """Of a weighted sum of all elements of the result."""
    x = x.clone().requires_grad_()
    result = operation(x)
    result = result if result.layout == torch.strided else result.to_dense()
    weights = torch.linspace(-1, 1, result.numel(), dtype=torch.float64).view(result.shape).to(result)
    return torch.autograd.grad(result, x, weights)


@SETTINGS
@given(x=sparse_tensors((torch.float64, torch.complex128)), operation=st.sampled_from(sorted(OPERATIONS)))
def test_gradients(x, operation):
    assume(not corrupts(operation, x) and not corrupts("plus itself", x))
    theirs, refusal = outcome(lambda each: gradient(OPERATIONS[operation], each), x)
    ours, error = outcome(lambda each: gradient(OPERATIONS[operation], each), x.to(DEVICE))
    torch.openreg.synchronize()
    assert type(error) is type(refusal), (operation, x, error, refusal)
    if refusal is None:
        assert_alike(ours, theirs, f"{operation} of {x}")
