# SPDX-License-Identifier: BSD-3-Clause
"""Sparse tensors can be created, checked, moved, printed and saved. Only calls whose result depends on data wait."""

import copy
import io
import pickle

import pytest
import sparse_samples
import torch
from parity import DEVICE, is_busy
from sparse_samples import COMPRESSED, COO, KINDS, members
from torch.torch_version import TorchVersion

pytestmark = [pytest.mark.no_fallback, pytest.mark.filterwarnings("ignore::UserWarning")]

LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def sample(kind, device=DEVICE, dtype=torch.float32):
    return sparse_samples.sample(kind, dtype).to(device)


def assert_same(ours, theirs, device=DEVICE):
    assert ours.device.type == torch.device(device).type
    assert all(member.device == ours.device for member in members(ours))
    facts, reference = sparse_samples.flat(ours), sparse_samples.flat(theirs)
    assert len(facts) == len(reference)
    for one, other in zip(facts, reference, strict=True):
        if isinstance(other, torch.Tensor):
            torch.testing.assert_close(one.cpu(), other.cpu())
        else:
            assert one == other


@pytest.mark.covers("registration.kernels of SparsePrivateUse1", "registration.kernels of SparseCsrPrivateUse1")
@pytest.mark.parametrize("key", [COO, COMPRESSED])
def test_each_operator_of_the_cpu_has_a_kernel(key):
    """Those of PyTorch's own namespace; c10d has one for process groups of the CPU."""
    ours, theirs = (set(sparse_samples.registered(each)) for each in (key, sparse_samples.CPU_KEYS[key]))
    assert ours - theirs == {"linear_backward"}  # of our own operator linear
    assert theirs - ours == set()


# Making


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_from_members(kind, index):
    device = torch.device(DEVICE, index)
    reference = sample(kind, "cpu")
    parts = [member.to(device) for member in members(reference)]
    if reference.layout == torch.sparse_coo:
        made = torch.sparse_coo_tensor(*parts, reference.shape, is_coalesced=reference.is_coalesced())
    else:
        made = torch.sparse_compressed_tensor(*parts, reference.shape, layout=reference.layout)
    assert made.device == device
    assert_same(made, reference)


def test_the_size_is_that_of_the_indices():
    assert torch.sparse_coo_tensor([[0, 2], [1, 0]], [1.0, 2.0], device=DEVICE).shape == (3, 2)
    assert torch.sparse_csr_tensor([0, 1, 2], [0, 2], [1.0, 2.0], device=DEVICE).shape == (2, 3)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_factories(layout):
    for device in (DEVICE, f"{DEVICE}:1"):
        results = []
        for each in (device, "cpu"):
            try:
                results.append(torch.zeros(4, 6, layout=layout, device=each))
                results.append(torch.zeros(4, 6, dtype=torch.int64, layout=layout, device=each))
            except RuntimeError as error:
                results.append(type(error))
        ours, theirs = results[: len(results) // 2], results[len(results) // 2 :]
        for one, other in zip(ours, theirs, strict=True):
            if isinstance(other, torch.Tensor):
                assert_same(one, other)
            else:
                assert one is other


@pytest.mark.parametrize("kind", KINDS)
def test_moving(kind):
    there = sample(kind)
    assert_same(there, sample(kind, "cpu"))
    assert_same(there.to(f"{DEVICE}:1"), there)
    assert there.to(f"{DEVICE}:1").device.index == 1
    assert_same(there.cpu(), there, "cpu")
    assert_same(there.to(torch.float64), sample(kind, "cpu").to(torch.float64))


def test_from_pinned_memory():
    """As a data loader gives them."""
    pinned = torch.eye(3).to_sparse().pin_memory()
    assert pinned.is_pinned()
    torch.testing.assert_close(pinned.to(DEVICE, non_blocking=True).to_dense().cpu(), torch.eye(3))


def test_work_on_the_second_device_stays_there():
    x = torch.eye(3, device=f"{DEVICE}:1").to_sparse()
    assert torch.openreg.current_device() == 0
    for result in (x + x, x @ x, x.coalesce(), x.to_sparse_csr(), x * 2, x @ torch.ones(3, 2, device=x.device)):
        assert result.device.index == 1
        if result.layout != torch.strided:
            assert {member.device.index for member in members(result)} == {1}


# Members


def test_members_are_views_of_the_tensor():
    x = torch.eye(3, device=DEVICE).to_sparse_csr()
    x.values().mul_(2)
    assert x.to_dense().diagonal().tolist() == [2.0] * 3
    y = torch.eye(3, device=DEVICE).to_sparse()
    y._values().mul_(3)
    assert y.to_dense().diagonal().tolist() == [3.0] * 3


def test_members_that_are_not_contiguous():
    """Kernels for the CPU read some of them as if they were, and beyond them."""
    places = torch.tensor([[0, 1], [0, 2], [1, 0], [3, 3]])
    values = torch.arange(8.0)[::2]
    ours = torch.sparse_coo_tensor(places.t().to(DEVICE), values.to(DEVICE), (4, 4), is_coalesced=True)
    strided = torch.empty(8, device=DEVICE)[::2].copy_(values)
    assert not strided.is_contiguous()
    ours = torch.sparse_coo_tensor(places.to(DEVICE).t(), strided, (4, 4), is_coalesced=True)
    theirs = torch.sparse_coo_tensor(places.t().contiguous(), values.contiguous(), (4, 4), is_coalesced=True)
    for function in (torch.Tensor.to_dense, lambda x: x @ x.t(), lambda x: torch.sparse.softmax(x, 1), lambda x: x * x):
        torch.testing.assert_close(function(ours).to_dense().cpu(), function(theirs).to_dense())
    crow = torch.tensor([0, 1, 2], device=DEVICE)
    matrix = torch.sparse_csr_tensor(crow, crow[:2], torch.empty(4, device=DEVICE)[::2].fill_(2), (2, 2))
    torch.testing.assert_close((matrix @ torch.eye(2, device=DEVICE)).cpu(), 2 * torch.eye(2))


def test_a_product_of_values_that_are_not_sorted_by_columns():
    """Each value meets the element at its own place. The CPU's product loses values of such a matrix."""
    crow, columns, values = (torch.tensor(each, device=DEVICE) for each in ([0, 2], [1, 0], [3.0, 5.0]))
    x = torch.sparse_csr_tensor(crow, columns, values, (1, 2))
    numbers = torch.tensor([[10.0, 100.0]], device=DEVICE)
    for result in (x * numbers, numbers * x):
        assert result.to_dense().tolist() == [[50.0, 300.0]]


# Showing and saving


@pytest.mark.parametrize("kind", ["coo", "coo hybrid", "csr", "csc", "bsr", "bsc"])
def test_the_text_is_the_cpus_with_the_device(kind):
    text = repr(sample(kind))
    assert f"device='{DEVICE}:0'" in text
    words = "".join(text.split()).replace(f"device='{DEVICE}:0',", "")
    assert words == "".join(repr(sample(kind, "cpu")).split())


@pytest.mark.parametrize("kind", KINDS)
def test_saving_and_copying(kind):
    x = sample(kind)
    assert_same(pickle.loads(pickle.dumps(x)), x)
    assert_same(copy.deepcopy(x), x)
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    assert_same(torch.load(file)["x"], x)
    file.seek(0)
    assert_same(torch.load(file, map_location="cpu")["x"], x, "cpu")


# Waiting


def product(x):
    return torch.ones(x.shape[-1], 3, device=x.device)


LAUNCHES = {
    "members": lambda x: x.clone(),
    "one element each": lambda x: x.sin(),
    "a number": lambda x: x * 2,
    "to a strided one": lambda x: x.to_dense(),
    "with a strided one": lambda x: torch.ones(x.shape, device=x.device) + x,
    "in place": lambda x: torch.ones(x.shape, device=x.device).add_(x, alpha=2),
    "where a mask is": lambda x: torch.ones(x.shape, device=x.device).sparse_mask(x),
    "product": lambda x: x @ product(x),
    "product with a vector": lambda x: x @ product(x)[:, 0],
    "sum": lambda x: x.sum(),
    "to elements": lambda x: x.to_sparse(),
    "to rows": lambda x: x.to_sparse_csr(),
    "to columns": lambda x: x.to_sparse_csc(),
    "gradient": lambda x: torch.sparse.mm(x.detach().requires_grad_(), product(x)).sum().backward(),
}
ONLY_COO = {
    "softmax": lambda x: torch.sparse.softmax(x, 1),
    "joined": lambda x: torch.cat([x, x]),
    "transposed": lambda x: x.t(),
    "masked by a sparse one": lambda x: x.sparse_mask(x.clone()),
}
ONLY_CSR = {
    "sampled product": lambda x: torch.sparse.sampled_addmm(x, product(x.t()), product(x).t()),
    "product that reduces": lambda x: torch.sparse.mm(x, product(x), "amax"),
    "with a strided factor": lambda x: x * torch.ones(x.shape, device=x.device),
}
CASES = [
    *(("coo coalesced", name, call) for name, call in {**LAUNCHES, **ONLY_COO}.items()),
    *(("csr", name, call) for name, call in {**LAUNCHES, **ONLY_CSR}.items()),
]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_sampled_product_has_the_dtypes_of_a_gpu(dtype):
    x = sample("csr", dtype=dtype)
    factors = sparse_samples.matrices(x)
    out = torch.zeros_like(x)
    if torch.__version__ < TorchVersion("2.15"):
        with pytest.raises(RuntimeError, match="sampled_addmm: Expected self to be a floating-point or complex"):
            torch.sparse.sampled_addmm(x, *factors)
        return
    expected = torch.sparse.sampled_addmm(x.float().cpu(), *(each.float().cpu() for each in factors), alpha=2)
    for result in (
        torch.sparse.sampled_addmm(x, *factors, alpha=2),
        torch.sparse.sampled_addmm(x, *factors, alpha=2, out=out),
    ):
        assert_same(result, expected.to(dtype))


@pytest.mark.parametrize(("kind", "name", "call"), CASES, ids=[f"{kind}: {name}" for kind, name, _ in CASES])
def test_the_host_goes_on_where_sizes_are_known(kind, name, call, gate):
    x = sample(kind)
    call(x)  # the first product of its kind waits until the kernel has accepted the layouts
    torch.openreg.synchronize()
    gate.close()
    call(x)
    assert is_busy()


WAITS = {
    "which places are the same": lambda x: torch.sparse_coo_tensor(x._indices(), x._values(), x.shape).coalesce(),
    "how many are not zero": lambda x: x.to_dense().to_sparse(),
    "which places both have": lambda x: x * x.clone(),
    "which places one has": lambda x: x + x.clone(),
    "the size of a product": lambda x: x @ x.t(),
    "whether indices are right": lambda x: torch.sparse_coo_tensor(
        x._indices(), x._values(), x.shape, check_invariants=True
    ),
}


@pytest.mark.parametrize("name", WAITS)
def test_the_host_waits_for_what_depends_on_data(name):
    x = sample("coo coalesced")
    WAITS[name](x)
    torch.openreg.set_sync_debug_mode("error")
    try:
        with pytest.raises(RuntimeError, match="waits"):
            WAITS[name](x)
    finally:
        torch.openreg.set_sync_debug_mode("default")


def test_a_graph_records_products_and_replays_them():
    x, y = sample("csr"), torch.ones(6, 3, device=DEVICE)
    expected = x @ y  # outside of a capture, where its kind is judged
    graph = torch.openreg.Graph()
    with torch.openreg.graph(graph):
        result = x @ y
    x.values().mul_(2)
    graph.replay()
    torch.testing.assert_close(result, 2 * expected)


def test_a_graph_cannot_record_what_waits():
    x = sample("coo")
    with pytest.raises(RuntimeError, match="captur"), torch.openreg.graph(torch.openreg.Graph()):
        x.coalesce()
