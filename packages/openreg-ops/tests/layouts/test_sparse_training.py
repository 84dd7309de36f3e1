# SPDX-License-Identifier: BSD-3-Clause
"""Models with sparse gradients and sparse matrices train as on the CPU, without fallback."""

import pytest
import torch
from parity import DEVICE
from torch import nn

pytestmark = [pytest.mark.no_fallback, pytest.mark.filterwarnings("ignore::UserWarning")]

ROWS = 20


class Twice(nn.Module):
    """Two gradients of one embedding, which are added."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(ROWS, 4, sparse=True)

    def forward(self, indices):
        return self.embedding(indices) + self.embedding(indices.flip(0))


MODELS = {
    "embedding": lambda: nn.Embedding(ROWS, 4, sparse=True),
    "padding": lambda: nn.Embedding(ROWS, 4, sparse=True, padding_idx=1),
    "largest norm": lambda: nn.Embedding(ROWS, 4, sparse=True, max_norm=1.0),
    "bag of sums": lambda: nn.EmbeddingBag(ROWS, 4, sparse=True, mode="sum"),
    "bag of means": lambda: nn.EmbeddingBag(ROWS, 4, sparse=True, mode="mean", padding_idx=3),
    "bag of maxima": lambda: nn.EmbeddingBag(ROWS, 4, sparse=True, mode="max"),  # refused, as on the CPU
    "twice": Twice,
}
OPTIMIZERS = {
    "SGD": (torch.optim.SGD, {}),
    "SGD with momentum": (torch.optim.SGD, {"momentum": 0.9}),
    "SGD for lists": (torch.optim.SGD, {"foreach": True}),
    "SGD upwards": (torch.optim.SGD, {"maximize": True}),
    "Adagrad": (torch.optim.Adagrad, {}),
    "SparseAdam": (torch.optim.SparseAdam, {}),
    "SparseAdam upwards": (torch.optim.SparseAdam, {"maximize": True}),
    "Adam": (torch.optim.Adam, {}),  # refused
    "SGD with decay": (torch.optim.SGD, {"weight_decay": 0.1}),  # refused
    "fused SGD": (torch.optim.SGD, {"fused": True}),  # refused
}


def train(make_model, optimizer, options, device):
    torch.manual_seed(1)
    model = make_model().to(device)
    steps = optimizer(model.parameters(), lr=0.1, **options)
    for _ in range(4):
        indices = torch.randint(0, ROWS, (6, 3)).to(device)
        steps.zero_grad()
        (model(indices) ** 2).sum().backward()
        assert next(model.parameters()).grad.is_sparse
        steps.step()
    return [parameter.detach().cpu() for parameter in model.parameters()]


def attempt(*args):
    try:
        return train(*args), None
    except Exception as error:
        return None, error


@pytest.mark.covers("registration.kernels of SparsePrivateUse1")
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_a_step_with_a_sparse_gradient(model, optimizer):
    cls, options = OPTIMIZERS[optimizer]
    ours, error = attempt(MODELS[model], cls, options, DEVICE)
    theirs, refusal = attempt(MODELS[model], cls, options, "cpu")
    assert type(error) is type(refusal), (error, refusal)
    if refusal is None:
        torch.testing.assert_close(ours, theirs)


def test_a_gradient_is_where_the_indices_were():
    embedding = nn.Embedding(ROWS, 4, sparse=True).to(DEVICE)
    seen = []
    hook = embedding.weight.register_hook(lambda grad: seen.append((grad.layout, grad.is_coalesced(), grad._nnz())))
    embedding(torch.tensor([1, 2, 2], device=DEVICE)).sum().backward()
    assert seen == [(torch.sparse_coo, False, 3)]
    hook.remove()
    assert embedding.weight.grad.coalesce().indices().tolist() == [[1, 2]]
    (embedding.weight * 2).sum().backward()  # a strided gradient is added to the sparse one
    assert embedding.weight.grad.layout == torch.strided
    assert embedding.weight.grad[2].tolist() == [4.0] * 4


def test_gather_gives_a_sparse_gradient():
    results = []
    for device in (DEVICE, "cpu"):
        x = torch.arange(6.0).view(2, 3).to(device).requires_grad_()
        torch.gather(x, 1, torch.tensor([[0, 0], [2, 1]], device=device), sparse_grad=True).sum().backward()
        assert x.grad.is_sparse
        results.append(x.grad.to_dense().cpu())
    torch.testing.assert_close(*results)


def test_scaled_gradients():
    results = []
    for device in (DEVICE, "cpu"):
        torch.manual_seed(1)
        embedding = nn.Embedding(ROWS, 4, sparse=True).to(device)
        steps = torch.optim.SGD(embedding.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler(device, init_scale=4.0)
        scaler.scale(embedding(torch.tensor([1, 2, 2], device=device)).square().sum()).backward()
        scaler.step(steps)
        scaler.update()
        results.append(embedding.weight.detach().cpu())
    torch.testing.assert_close(*results)


@pytest.mark.covers("registration.kernels of SparseCsrPrivateUse1")
@pytest.mark.parametrize("convert", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr, torch.Tensor.to_sparse_csc])
def test_a_graph_convolution(convert):
    """A product with a sparse matrix of neighbors, forward and backward."""
    results = []
    for device in (DEVICE, "cpu"):
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)
        nodes, links = torch.randn(10, 4).to(device), (torch.rand(10, 10) > 0.7).float().to(device)
        steps = torch.optim.Adam(net.parameters(), lr=0.01)
        for _ in range(3):
            steps.zero_grad()
            (convert(links) @ net(convert(links) @ nodes)).square().mean().backward()
            steps.step()
        results.append([parameter.detach().cpu() for parameter in net.parameters()])
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("convert", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
def test_a_sparse_weight_of_a_layer(convert):
    results = []
    for device in (DEVICE, "cpu"):
        torch.manual_seed(1)
        weight = convert(torch.randn(3, 4) * (torch.rand(3, 4) > 0.5)).to(device).requires_grad_()
        x = torch.randn(5, 4).to(device).requires_grad_()
        nn.functional.linear(x, weight).square().sum().backward()
        results.append([x.grad.cpu(), weight.grad.to_dense().cpu()])
    torch.testing.assert_close(*results)
