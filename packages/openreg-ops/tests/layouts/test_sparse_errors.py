# SPDX-License-Identifier: BSD-3-Clause
"""Invalid sparse tensors and calls raise the CPU's exceptions, from the call where possible. Calls that would make CPU
kernels read out of bounds are refused."""

import pytest
import sparse_samples
import torch
from parity import DEVICE

pytestmark = [pytest.mark.no_fallback, pytest.mark.filterwarnings("ignore::UserWarning")]

VALUES = [1.0, 2.0]
CSR, CSC = torch.sparse_csr_tensor, torch.sparse_csc_tensor


def made(function, *lists, size=(2, 2), **options):
    """On a device, checked."""
    return lambda device: function(*lists, size, device=device, check_invariants=True, **options)


WRONG_TENSORS = {
    "index beyond": made(torch.sparse_coo_tensor, [[0, 5], [1, 0]], VALUES),
    "negative index": made(torch.sparse_coo_tensor, [[0, -1], [1, 0]], VALUES),
    "negative index without a size": lambda device: torch.sparse_coo_tensor([[0, -1]], VALUES, device=device),
    "more indices than values": made(torch.sparse_coo_tensor, [[0, 1, 1], [1, 0, 1]], VALUES),
    "one row of indices": made(torch.sparse_coo_tensor, [0, 1], VALUES),
    "too few dimensions": made(torch.sparse_coo_tensor, [[0, 1]], VALUES),
    "called coalesced": made(torch.sparse_coo_tensor, [[0, 0], [1, 1]], VALUES, is_coalesced=True),
    "column beyond": made(CSR, [0, 1, 2], [0, 7], VALUES),
    "pointers decrease": made(CSR, [0, 2, 1], [0, 1], VALUES),
    "pointers beyond": made(CSR, [0, 1, 3], [0, 1], VALUES),
    "pointers begin late": made(CSR, [1, 1, 2], [0, 1], VALUES),
    "too few pointers": made(CSR, [0, 2], [0, 1], VALUES),
    "a column twice": made(CSR, [0, 2, 2], [1, 1], VALUES),
    "columns in disorder": made(CSR, [0, 2, 2], [1, 0], VALUES),
    "row beyond": made(CSC, [0, 1, 2], [0, 7], VALUES),
    "indices of a float": lambda device: torch.sparse_csr_tensor(
        torch.tensor([0.0, 1, 2]), torch.tensor([0, 1]), torch.ones(2), (2, 2), device=device, check_invariants=True
    ),
    "blocks that do not fit": made(torch.sparse_bsr_tensor, [0, 1], [0], [[[1.0, 2.0, 3.0]]], size=(2, 2)),
    "negative size": made(torch.sparse_coo_tensor, [[0], [0]], [1.0], size=(-1, 2)),
    "values on another device": lambda device: torch.sparse_coo_tensor(
        torch.zeros(2, 1, dtype=torch.long, device=device), torch.ones(1, device="meta"), (2, 2)
    ),
}


def matrix(device, layout="coo", shape=(3, 4)):
    x = torch.arange(float(shape[0] * shape[1]), device=device).view(shape)
    return getattr(x, {"coo": "to_sparse", "csr": "to_sparse_csr", "csc": "to_sparse_csc"}[layout])()


WRONG_USES = {
    "sizes of a sum": lambda d: matrix(d) + matrix(d, shape=(4, 3)),
    "sizes of a sum with a strided one": lambda d: torch.ones(2, 2, device=d) + matrix(d),
    "sum with a strided one": lambda d: matrix(d) + torch.ones(3, 4, device=d),
    "sizes of a product": lambda d: matrix(d) @ torch.ones(3, 2, device=d),
    "sizes of a product of rows": lambda d: matrix(d, "csr") @ torch.ones(3, 2, device=d),
    "sizes of a product of a vector": lambda d: matrix(d, "csr") @ torch.ones(3, device=d),
    "dtypes of a product": lambda d: matrix(d) @ torch.ones(4, 2, device=d, dtype=torch.float64),
    "dtypes of a product of rows": lambda d: matrix(d, "csr") @ torch.ones(4, 2, device=d, dtype=torch.float64),
    "layouts of a product": lambda d: matrix(d) @ matrix(d, "csr", (4, 3)),
    "layouts of a sum": lambda d: matrix(d) + matrix(d, "csr"),
    "layouts of a product with blocks": lambda d: (
        torch.ones(4, 4, device=d) @ torch.eye(4, device=d).to_sparse_bsr((2, 2))
    ),
    "bool in a product": lambda d: matrix(d).bool() @ torch.ones(4, 2, device=d, dtype=torch.bool),
    "members of one that is not coalesced": lambda d: torch.sparse_coo_tensor([[0, 0]], VALUES, device=d).values(),
    "members of another layout": lambda d: matrix(d).crow_indices(),
    "elements of a strided one": lambda d: torch.ones(2, device=d).indices(),
    "blocks of a size that does not fit": lambda d: torch.eye(4, device=d).to_sparse_bsr((3, 2)),
    "a division by a tensor": lambda d: matrix(d) / torch.ones(3, 4, device=d),
    "zeroth power": lambda d: matrix(d) ** 0,
    "an operator that there is not": lambda d: matrix(d).exp(),
    "an operator that there is not of rows": lambda d: matrix(d, "csr").sort(),
    "an operator of another layout": lambda d: torch.bmm(matrix(d), torch.ones(3, 4, 2, device=d)),
    "softmax over a dimension that there is not": lambda d: torch.sparse.softmax(matrix(d), 5),
    "softmax of integers": lambda d: torch.sparse.softmax(matrix(d).long(), 1),
    "a mask of another size": lambda d: torch.ones(2, 2, device=d).sparse_mask(matrix(d)),
    "a mask of other dimensions": lambda d: matrix(d).sparse_mask(torch.ones(3, 4, device=d).to_sparse(1)),
    "index beyond": lambda d: matrix(d).index_select(0, torch.tensor([9], device=d)),
    "narrow beyond": lambda d: matrix(d).narrow_copy(0, 2, 5),
    "joined sizes": lambda d: torch.cat([matrix(d), matrix(d, shape=(4, 3))]),
    "resized with elements": lambda d: matrix(d).sparse_resize_((2, 2), 2, 0),
    "an output of another layout": lambda d: torch.mm(matrix(d), torch.ones(4, 2, device=d), out=matrix(d)),
    "an output of another dtype": lambda d: torch.mm(
        matrix(d), torch.ones(4, 2, device=d), out=torch.empty(0, device=d, dtype=torch.int64)
    ),
    "a sum into integers": lambda d: torch.ones(3, 4, device=d).long().add_(matrix(d)),
    "sampled product of other sizes": lambda d: torch.sparse.sampled_addmm(
        matrix(d, "csr"), torch.ones(3, 2, device=d), torch.ones(3, 4, device=d)
    ),
    "sampled product of elements": lambda d: torch.sparse.sampled_addmm(
        matrix(d), torch.ones(3, 2, device=d), torch.ones(2, 4, device=d)
    ),
    "reduction that there is not": lambda d: torch.sparse.mm(matrix(d, "csr"), torch.ones(4, 2, device=d), "median"),
    "reduction by products": lambda d: torch.sparse.mm(matrix(d, "csr"), torch.ones(4, 2, device=d), "prod"),
    "sum without the dimension": lambda d: torch._sparse_csr_sum(matrix(d, "csr"), 0, keepdim=False),
    "copy from a strided one": lambda d: matrix(d).copy_(torch.ones(3, 4, device=d)),
    "copy of other sizes": lambda d: matrix(d, "csr").copy_(matrix(d, "csr", (4, 3))),
}


def caught(call, device):
    try:
        call(device)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("name", [*WRONG_TENSORS, *WRONG_USES])
def test_a_mistake_is_the_cpus_on_the_calling_line(name):
    call = {**WRONG_TENSORS, **WRONG_USES}[name]
    ours, theirs = caught(call, DEVICE), caught(call, "cpu")
    assert theirs is not None
    assert type(ours) is type(theirs), (ours, theirs)
    torch.openreg.synchronize()


def test_all_new_tensors_are_checked_where_that_is_asked_for():
    with torch.sparse.check_sparse_tensor_invariants(), pytest.raises(RuntimeError, match="col_indices"):
        torch.sparse_csr_tensor([0, 1, 2], [0, 7], VALUES, (2, 2), device=DEVICE)


TWO_DEVICES = {
    "sum": lambda: matrix(DEVICE) + matrix(f"{DEVICE}:1"),
    "sum with the host's": lambda: matrix(DEVICE) + matrix("cpu"),
    "product": lambda: matrix(DEVICE) @ torch.ones(4, 2),
    "product of rows": lambda: matrix(DEVICE, "csr") @ torch.ones(4, 2, device=f"{DEVICE}:1"),
    "intersection": lambda: matrix(DEVICE) * matrix("cpu"),
    "mask": lambda: torch.ones(3, 4).sparse_mask(matrix(DEVICE)),
    "output": lambda: torch.add(torch.ones(3, 4, device=DEVICE), matrix(DEVICE), out=torch.empty(3, 4)),
}


@pytest.mark.parametrize("name", TWO_DEVICES)
def test_operands_on_two_devices(name):
    with pytest.raises(RuntimeError, match="device"):
        TWO_DEVICES[name]()


def unchecked(layout=torch.sparse_coo):
    """Returns a tensor with indices out of bounds, which were not checked."""
    if layout == torch.sparse_coo:
        places = torch.tensor([[0, 500000], [1, 0]], device=DEVICE)
        return torch.sparse_coo_tensor(places, torch.ones(2, device=DEVICE), (2, 2), is_coalesced=True)
    lists = [torch.tensor(each, device=DEVICE) for each in ([0, 1, 500000], [0, 700000])]
    return torch.sparse_compressed_tensor(*lists, torch.ones(2, device=DEVICE), (2, 2), layout=layout)


BEYOND = {
    "sum": lambda x: torch.ones(2, 2, device=DEVICE).add_(x),
    "strided": lambda x: x.to_dense(),
    "product": lambda x: x @ torch.ones(2, 2, device=DEVICE),
    "rows": lambda x: x.to_sparse_csr(),
    "elements": lambda x: x.to_sparse().coalesce(),
    "square": lambda x: x @ x,
    "mask": lambda x: torch.ones(2, 2, device=DEVICE).sparse_mask(x),
}


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
@pytest.mark.parametrize("name", BEYOND)
def test_nothing_follows_an_index_beyond_the_tensor(name, layout):
    """The CPU reads and writes memory that belongs to others. Here the call fails, or the device, as on a GPU."""
    neighbor = torch.zeros(1 << 20, device=DEVICE)
    failure = ""
    try:
        BEYOND[name](unchecked(layout))
        torch.openreg.synchronize()
    except RuntimeError as error:
        failure = str(error)
    torch.openreg.reset_device()
    assert not failure or "dimension" in failure or "out of " in failure
    assert neighbor.count_nonzero().item() == 0


def raised_until_idle(call):
    """Returns the error of a call, or that of its kernel. The device works again."""
    text = ""
    try:
        call()
        torch.openreg.synchronize()
    except RuntimeError as error:
        text = str(error)
    torch.openreg.reset_device()
    return text


def test_the_rows_of_a_batch_lead_to_no_other_batch():
    crow = torch.tensor([[0, 3, 4], [0, 2, 2]], device=DEVICE)
    columns = torch.zeros(2, 2, dtype=torch.int64, device=DEVICE)
    error = raised_until_idle(lambda: torch._convert_indices_from_csr_to_coo(crow, columns))
    assert "from 0 to 2, the number of elements" in error


REDUCED = {
    "another shape": (lambda found: found[:1], "arg_out has the shape"),
    "another dtype": (lambda found: found.int(), "arg_out has the shape"),
    "beyond the values": (lambda found: found + 1000, "numbers from 0 to"),
    "nothing": (lambda found: found[:0], "arg_out has the shape"),
}


@pytest.mark.parametrize("change", REDUCED)
def test_a_gradient_follows_no_place_beyond_the_values(change):
    x, weight = matrix(DEVICE, "csr"), torch.rand(4, 2, device=DEVICE, requires_grad=True)
    result, found = torch.ops.aten._sparse_mm_reduce_impl(x, weight, "amax")
    function, text = REDUCED[change]
    arguments = (x, torch.ones_like(result), weight.detach(), "amax", function(found), [True, True])
    assert text in raised_until_idle(lambda: torch.ops.aten._sparse_mm_reduce_impl_backward(*arguments))


INVALID_RESULTS = {
    "csr batch": lambda x: x + x.clone(),
    "csr hybrid": lambda x: x.to_dense() + x,
    "csc square": lambda x: torch.addmm(x, x, x),
}


@pytest.mark.parametrize("kind", INVALID_RESULTS)
def test_what_the_cpus_kernels_get_wrong_is_refused(kind):
    """On the CPU these give tensors whose members do not go together, or end the process."""
    with pytest.raises(RuntimeError, match=r"convert|to_dense"):
        INVALID_RESULTS[kind](sparse_samples.sample(kind).to(DEVICE))
    torch.openreg.synchronize()


def test_an_expansion_to_nothing_is_empty():
    """PyTorch's function for the CPU divides by the size, which ends the process."""
    found = torch._sparse_broadcast_to(torch.ones(3, device=DEVICE).to_sparse(), (2, 0, 3))
    assert (found.shape, found._nnz(), found.device.type) == ((2, 0, 3), 0, DEVICE)
