# SPDX-License-Identifier: BSD-3-Clause
"""Models of torch.ao.quantization, converted on the device or moved there, give the CPU's results."""

import copy
import io

import pytest
import torch
from parity import DEVICE
from torch import nn
from torch.ao import quantization
from torch.ao.quantization import quantize_fx

pytestmark = [
    pytest.mark.no_fallback,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

# PyTorch's other one, fbgemm, is what x86 is made of.
ENGINES = [engine for engine in torch.backends.quantized.supported_engines if engine not in ("none", "fbgemm")]
# The scales of weights: for each channel; for each tensor, as qnnpack's transposed convolutions want them.
ACTIVATION = quantization.MinMaxObserver.with_args(dtype=torch.quint8, reduce_range=True)
BY_CHANNEL = quantization.QConfig(ACTIVATION, quantization.default_per_channel_weight_observer)
WHOLE = quantization.QConfig(ACTIVATION, quantization.default_weight_observer)


class Network(nn.Module):
    """Convolutions with a shortcut, then linear layers."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv, self.norm, self.relu = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()
        self.pool, self.second = nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding=1, groups=2)
        self.up, self.back = nn.Upsample(scale_factor=2.0), nn.ConvTranspose2d(8, 8, 3)
        self.sum, self.join = nn.quantized.FloatFunctional(), nn.quantized.FloatFunctional()
        self.mean, self.hidden, self.relu2 = nn.AdaptiveAvgPool2d(2), nn.Linear(64, 16), nn.ReLU()
        self.last = nn.Linear(16, 4)

    def forward(self, x):
        x = self.pool(self.relu(self.norm(self.conv(self.quant(x)))))
        x = self.sum.add_relu(x, self.second(x))
        x = self.join.cat([self.mean(self.up(x)), self.mean(self.back(x))], 1).flatten(1)
        return self.dequant(self.last(self.relu2(self.hidden(x))))


PARTS = [["conv", "norm", "relu"], ["hidden", "relu2"]]


@pytest.fixture(params=ENGINES)
def engine(request):
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = request.param
    yield request.param
    torch.openreg.synchronize()
    torch.backends.quantized.engine = before


def images(device="cpu"):
    return torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(1)).to(device)


def converted(device):
    """Observed and converted on the device."""
    torch.manual_seed(0)
    network = quantization.fuse_modules(Network().eval(), PARTS)
    network.qconfig, network.back.qconfig = BY_CHANNEL, WHOLE
    network = quantization.prepare(network).to(device)
    for _ in range(2):
        network(images(device))
    return quantization.convert(network)


@pytest.mark.covers("registration.kernels of torch.ops.quantized")
@pytest.mark.usefixtures("engine")
def test_a_network_in_eager_mode():
    reference, ours = converted("cpu"), converted(DEVICE)
    expected = reference(images())
    for _ in range(2):
        assert ours(images(DEVICE)).cpu().equal(expected)
    assert reference.to(DEVICE)(images(DEVICE)).cpu().equal(expected)


def test_copies_of_a_network():
    network = converted(DEVICE)
    expected = network(images(DEVICE))
    assert copy.deepcopy(network)(images(DEVICE)).equal(expected)
    file = io.BytesIO()
    torch.save(network.state_dict(), file)
    file.seek(0)
    other = converted("cpu")
    other.load_state_dict(torch.load(file, map_location="cpu"))
    assert other(images()).equal(expected.cpu())


@pytest.mark.usefixtures("engine")
def test_a_network_by_its_graph():
    def convert(device):
        torch.manual_seed(0)
        network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.Flatten(), nn.Linear(64, 5))
        mapping = quantization.QConfigMapping().set_global(BY_CHANNEL)
        prepared = quantize_fx.prepare_fx(network.eval().to(device), mapping, (images(device),))
        prepared(images(device))
        return quantize_fx.convert_fx(prepared)

    assert convert(DEVICE)(images(DEVICE)).cpu().equal(convert("cpu")(images()))


def test_training_that_knows_of_quantization():
    def train(device):
        torch.manual_seed(0)
        network = quantization.fuse_modules_qat(Network().train(), PARTS)
        network.qconfig = quantization.get_default_qat_qconfig("x86")
        network.back.qconfig = None
        network = quantization.prepare_qat(network).to(device)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = network(images(device)).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    assert train(DEVICE) == pytest.approx(train("cpu"), rel=1e-4)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(8, 6, 2, bidirectional=True), nn.GRU(12, 5)
        self.cell, self.last = nn.LSTMCell(5, 5), nn.Linear(5, 3)

    def forward(self, x):
        x, _ = self.lstm(x)
        x, _ = self.gru(x)
        return self.last(self.cell(x[-1])[0])


@pytest.mark.parametrize("dtype", [torch.qint8, torch.float16])
@pytest.mark.parametrize("where", ["cpu", DEVICE])
def test_layers_that_quantize_what_comes_in(dtype, where):
    torch.manual_seed(0)
    network, x = Recurrent().eval(), torch.randn(7, 2, 8)
    kinds = {nn.LSTM, nn.GRU, nn.LSTMCell, nn.Linear}
    expected = quantization.quantize_dynamic(copy.deepcopy(network), kinds, dtype=dtype)(x)
    ours = quantization.quantize_dynamic(network.to(where), kinds, dtype=dtype).to(DEVICE)
    for _ in range(2):
        torch.testing.assert_close(ours(x.to(DEVICE)).cpu(), expected)


def test_a_packed_sequence():
    torch.manual_seed(0)
    layer, x = nn.ModuleList([nn.LSTM(8, 6)]).eval(), torch.randn(7, 2, 8)
    reference = quantization.quantize_dynamic(layer, {nn.LSTM})
    ours = copy.deepcopy(reference).to(DEVICE)
    results = [
        module[0](nn.utils.rnn.pack_padded_sequence(x.to(device), [7, 4]))[0]
        for module, device in ((ours, DEVICE), (reference, "cpu"))
    ]
    torch.testing.assert_close(results[0].data.cpu(), results[1].data)


def test_dropout_between_quantized_layers_is_refused():
    layers = quantization.quantize_dynamic(nn.ModuleList([nn.LSTM(8, 6, 2, dropout=0.5)]), {nn.LSTM})
    x = torch.randn(7, 2, 8).to(DEVICE)
    with pytest.raises(NotImplementedError, match=r"eval\(\)"):
        layers.train().to(DEVICE)[0](x)
    layers.eval()[0](x)


def test_embeddings():
    tables = nn.ModuleList([nn.Embedding(10, 8), nn.EmbeddingBag(10, 8, mode="sum", include_last_offset=True)])
    for table in tables:
        table.qconfig = quantization.float_qparams_weight_only_qconfig
    reference = quantization.convert(quantization.prepare(tables))
    ours = copy.deepcopy(reference).to(DEVICE)
    rows, bags = torch.tensor([1, 2, 4, 5]), torch.tensor([0, 2, 4])
    assert ours[0](rows.to(DEVICE)).cpu().equal(reference[0](rows))
    assert ours[1](rows.to(DEVICE), bags.to(DEVICE)).cpu().equal(reference[1](rows, bags))


OBSERVERS = (
    quantization.MinMaxObserver,
    quantization.MovingAverageMinMaxObserver,
    quantization.PerChannelMinMaxObserver,
    quantization.MovingAveragePerChannelMinMaxObserver,
    quantization.HistogramObserver,
)


@pytest.mark.parametrize("observer", OBSERVERS)
def test_observers(observer):
    found = []
    for device in (DEVICE, "cpu"):
        module = observer().to(device)
        for seed in (1, 2):
            module(torch.randn(3, 4, generator=torch.Generator().manual_seed(seed)).to(device))
        found.append([value.cpu() for value in module.calculate_qparams()])
    torch.testing.assert_close(*found)
