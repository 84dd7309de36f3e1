# SPDX-License-Identifier: BSD-3-Clause
"""Sparse tensors of the five layouts: construction, components, conversions, products, and sparse gradients.

``@covers`` takes the keys of the rows of hooks.toml (openreg-doctor) that the test covers. A row is a hook, a name or a
registration that a backend provides and PyTorch uses.
"""

import io
from collections.abc import Callable

import pytest
import torch

from openreg_testing.conformance.harness import DeviceUnderTest, covers

COO = "registration.kernels of SparsePrivateUse1"
COMPRESSED = "registration.kernels of SparseCsrPrivateUse1"
FLATTEN = "registration.at::native::flatten_indices_stub"

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse"),
    pytest.mark.filterwarnings("ignore:.*invariant checks are implicitly disabled"),
]

BLOCKS = (2, 2)
CONVERSIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "coo": lambda x: x.to_sparse(),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr(BLOCKS),
    "bsc": lambda x: x.to_sparse_bsc(BLOCKS),
}
PAIRS = [(one, other) for one in CONVERSIONS for other in CONVERSIONS]
OPTIMIZERS = (torch.optim.SGD, torch.optim.Adagrad, torch.optim.SparseAdam)


def plain(device: torch.device) -> torch.Tensor:
    """Returns a dense matrix of mostly zeros; some of its rows and columns contain only zeros."""
    x = torch.zeros(4, 6)
    x[0, 1], x[0, 5], x[2, 0], x[2, 1], x[3, 3] = 1.0, -2.0, 3.0, 0.5, 4.0
    return x.to(device)


def members(x: torch.Tensor) -> list[torch.Tensor]:
    """Returns the indices or pointers, and the values of a sparse tensor."""
    if x.layout == torch.sparse_coo:
        return [x._indices(), x._values()]
    if x.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [x.crow_indices(), x.col_indices(), x.values()]
    return [x.ccol_indices(), x.row_indices(), x.values()]


def assert_same(ours: torch.Tensor, theirs: torch.Tensor, device: torch.device) -> None:
    """Raises AssertionError unless layouts, indices and values are equal, and `ours` is on the device."""
    assert ours.layout == theirs.layout
    assert all(member.device == device for member in members(ours))
    for one, other in zip(members(ours), members(theirs), strict=True):
        torch.testing.assert_close(one.cpu(), other)


@covers(COO, COMPRESSED)
@pytest.mark.parametrize("layout", CONVERSIONS)
def test_a_dense_tensor_becomes_sparse_and_dense_again(device: DeviceUnderTest, layout: str) -> None:
    """The indices and values of a converted tensor are on the device, and equal those of the CPU."""
    x = CONVERSIONS[layout](plain(device.first))
    assert_same(x, CONVERSIONS[layout](plain(torch.device("cpu"))), device.first)
    assert torch.equal(x.to_dense().cpu(), plain(torch.device("cpu")))


@covers(COMPRESSED, FLATTEN)
@pytest.mark.parametrize(("origin", "target"), PAIRS, ids=[f"{one}-{other}" for one, other in PAIRS])
def test_one_layout_becomes_another(device: DeviceUnderTest, origin: str, target: str) -> None:
    """The device converts between two layouts if the CPU does, and raises the CPU's type of exception otherwise."""
    try:
        expected = CONVERSIONS[target](CONVERSIONS[origin](plain(torch.device("cpu"))))
    except RuntimeError as error:
        with pytest.raises(type(error)):
            CONVERSIONS[target](CONVERSIONS[origin](plain(device.first)))
        return
    assert_same(CONVERSIONS[target](CONVERSIONS[origin](plain(device.first))), expected, device.first)


@covers(COO)
def test_elements_of_one_place_are_added(device: DeviceUnderTest) -> None:
    """coalesce() sorts the indices and adds the values of equal indices."""
    places = torch.tensor([[2, 0, 2], [1, 3, 1]]).to(device.first)
    x = torch.sparse_coo_tensor(places, device.tensor(1, 2, 4), (3, 4))
    assert not x.is_coalesced()
    y = x.coalesce()
    assert y.is_coalesced()
    assert (y.indices().tolist(), y.values().tolist()) == ([[0, 2], [3, 1]], [2, 5])


def product_and_gradients(where: torch.device, layout: str) -> list[torch.Tensor]:
    """Returns the product of a sparse matrix and a dense one, and the gradients of both."""
    x = CONVERSIONS[layout](plain(where)).requires_grad_()
    y = (torch.arange(12.0).view(6, 2) / 8).to(where).requires_grad_()
    result = x @ y
    result.square().sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    assert y.grad is not None
    return [result.detach().cpu(), y.grad.cpu(), x.grad.to_dense().cpu()]


@covers(COO, COMPRESSED)
@pytest.mark.parametrize("layout", CONVERSIONS)
def test_a_product_with_a_dense_matrix_and_its_gradients(device: DeviceUnderTest, layout: str) -> None:
    """A product of a sparse and a dense matrix and its gradients equal those of the CPU, if the CPU supports them."""
    try:
        expected = product_and_gradients(torch.device("cpu"), layout)
    except RuntimeError as error:
        with pytest.raises(type(error)):
            product_and_gradients(device.first, layout)
        return
    torch.testing.assert_close(product_and_gradients(device.first, layout), expected)


@covers(COO, COMPRESSED)
@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_sums_products_and_masks_of_elements(device: DeviceUnderTest, layout: str) -> None:
    """Sums and products with numbers, sparse and dense tensors, and masks equal those of dense tensors."""
    cpu = torch.device("cpu")
    x, dense = CONVERSIONS[layout](plain(device.first)), plain(cpu)
    for result, expected in (
        (x * 2, dense * 2),
        (x + x * 3, dense * 4),
        (x * x, dense * dense),
        (torch.ones(4, 6).to(device.first) + x, 1 + dense),
        (torch.full((4, 6), 7.0).to(device.first).sparse_mask(x), 7 * (dense != 0)),
        (x.sum(), dense.sum()),
        (x.sin(), dense.sin()),
    ):
        strided = result if result.layout == torch.strided else result.to_dense()
        torch.testing.assert_close(strided.cpu(), expected.to(strided.dtype))


@covers(COO)
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda cls: str(cls.__name__))
def test_a_sparse_gradient_steps_an_embedding(device: DeviceUnderTest, optimizer: type[torch.optim.Optimizer]) -> None:
    """nn.Embedding(sparse=True) has a sparse gradient, which SGD, Adagrad and SparseAdam accept."""
    found = []
    for where in (device.first, torch.device("cpu")):
        layer = torch.nn.Embedding(6, 2, sparse=True, _weight=torch.arange(12.0).view(6, 2) / 4).to(where)
        steps = optimizer(layer.parameters(), lr=0.1)  # type: ignore[call-arg]
        for _ in range(3):
            steps.zero_grad()
            layer(torch.tensor([[1, 4], [4, 0]]).to(where)).square().sum().backward()
            assert layer.weight.grad is not None
            assert layer.weight.grad.is_sparse
            steps.step()
        found.append(layer.weight.detach().cpu())
    torch.testing.assert_close(found[0], found[1])


@covers(COO, COMPRESSED)
def test_wrong_indices_are_found_where_that_is_asked_for(device: DeviceUnderTest) -> None:
    """With check_invariants=True, wrong indices raise RuntimeError in the call itself, not later."""
    with pytest.raises(RuntimeError, match="index"):
        torch.sparse_coo_tensor(torch.tensor([[0, 9]]), [1.0, 2.0], (3,), device=device.first, check_invariants=True)
    with pytest.raises(RuntimeError, match="col_indices"):
        torch.sparse_csr_tensor([0, 1], [9], [1.0], (1, 3), device=device.first, check_invariants=True)


@covers(COO, COMPRESSED)
@pytest.mark.parametrize("layout", CONVERSIONS)
def test_a_file_keeps_them(device: DeviceUnderTest, layout: str) -> None:
    """torch.load returns a sparse tensor on the device from which it was saved, unless map_location names another."""
    x = CONVERSIONS[layout](plain(device.first))
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    assert_same(torch.load(file), x.cpu(), device.first)
    file.seek(0)
    assert_same(torch.load(file, map_location="cpu"), x.cpu(), torch.device("cpu"))


@covers(COO, COMPRESSED)
@pytest.mark.parametrize("layout", CONVERSIONS)
def test_they_stay_on_the_second_device(device: DeviceUnderTest, layout: str) -> None:
    """Results of sparse tensors are on the device of their operands, also if another device is current."""
    x = CONVERSIONS[layout](plain(device.second))
    for result in (x * 2, x.clone(), x.to(torch.float64)):
        assert all(member.device == device.second for member in members(result))
    assert x.to_dense().device == device.second
