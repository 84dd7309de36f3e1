# SPDX-License-Identifier: BSD-3-Clause
"""Weights that torchao quantizes, and models that it exports and quantizes (PT2E), give the CPU's results."""

import copy
import importlib.util
import io
import logging
import warnings

import pytest
import torch
from parity import DEVICE
from torch import nn

# `nox -s subsets` collects these tests also for packages that require this one, without the requirements of its tests.
if importlib.util.find_spec("torchao") is None:
    pytest.skip("torchao, of openreg-ops[test], is not installed", allow_module_level=True)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # deprecations of its own
    logging.disable(logging.ERROR)  # and its kernels for GPUs, which it does not find
    from torchao import quantization
    from torchao.quantization.pt2e import quantize_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    logging.disable(logging.NOTSET)

pytestmark = [
    pytest.mark.no_fallback,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

SCHEMES = {
    "int8 weights": quantization.Int8WeightOnlyConfig,
    "int8 weights and activations": quantization.Int8DynamicActivationInt8WeightConfig,
    "int4 weights": lambda: quantization.IntxWeightOnlyConfig(weight_dtype=torch.int4),
    "int4 weights by groups": lambda: quantization.IntxWeightOnlyConfig(
        weight_dtype=torch.int4, granularity=quantization.PerGroup(32)
    ),
    "int4 weights and int8 activations": lambda: quantization.Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4
    ),
    "float8 weights": quantization.Float8WeightOnlyConfig,
}


def network(dtype=torch.float32):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 32)).to(dtype).eval()


def inputs(dtype=torch.float32):
    return torch.randn(5, 128, generator=torch.Generator().manual_seed(1)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_scheme_gives_what_it_gives_on_the_cpu(scheme, dtype):
    reference, ours = network(dtype), network(dtype).to(DEVICE)
    for module in (reference, ours):
        quantization.quantize_(module, SCHEMES[scheme]())
    expected = reference(inputs(dtype))
    assert ours(inputs(dtype).to(DEVICE)).cpu().equal(expected)
    assert {parameter.device.type for parameter in ours.parameters()} == {DEVICE}
    moved = copy.deepcopy(reference).to(DEVICE)
    assert moved(inputs(dtype).to(DEVICE)).cpu().equal(expected)
    assert copy.deepcopy(ours).cpu()(inputs(dtype)).equal(expected)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_scheme_is_saved_and_loaded(scheme):
    ours = network().to(DEVICE)
    quantization.quantize_(ours, SCHEMES[scheme]())
    file = io.BytesIO()
    torch.save(ours.state_dict(), file)
    for location in (f"{DEVICE}:0", "cpu"):
        file.seek(0)
        other = network().to(location)
        other.load_state_dict(torch.load(file, map_location=location, weights_only=False), assign=True)
        assert other(inputs().to(location)).cpu().equal(ours(inputs().to(DEVICE)).cpu())


REFUSED = {
    quantization.Float8DynamicActivationFloat8WeightConfig: "CUDA",
    quantization.Int4WeightOnlyConfig: "mslk",
    quantization.Float8DynamicActivationInt4WeightConfig: "mslk",
}


@pytest.mark.parametrize("config", REFUSED)
def test_schemes_for_named_devices_are_refused_by_torchao(config):
    """On the CPU, too: it asks for a vendor's device or library by name."""
    with pytest.raises((AssertionError, ImportError), match=REFUSED[config]):
        quantization.quantize_(network(torch.bfloat16).to(DEVICE), config())


# PT2E


def convolutional():
    torch.manual_seed(0)
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(128, 16), nn.ReLU(), nn.Linear(16, 4)),
    )


def images(device):
    return torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1)).to(device)


def exported(module, device):
    return torch.export.export(module.to(device), (images(device),)).module()


def quantizer(**options):
    return x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config(**options))


@pytest.mark.parametrize("dynamic", [False, True])
def test_an_exported_model(dynamic):
    def convert(device):
        prepared = quantize_pt2e.prepare_pt2e(exported(convolutional().eval(), device), quantizer(is_dynamic=dynamic))
        for _ in range(2):
            prepared(images(device))
        return quantize_pt2e.convert_pt2e(prepared)

    ours, reference = convert(DEVICE), convert("cpu")
    targets = {str(node.target) for node in ours.graph.nodes}
    assert any(target.startswith("quantized_decomposed.dequantize_per_channel") for target in targets)
    torch.testing.assert_close(ours(images(DEVICE)).cpu(), reference(images("cpu")))


def test_an_exported_model_learns_with_quantization_in_mind():
    """What is trained; PyTorch takes minutes to convert it, and gives the graph of the test above."""

    def train(device):
        module = nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.ReLU(), nn.Linear(16, 4))
        torch.manual_seed(0)
        for parameter in module.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)
        prepared = quantize_pt2e.prepare_qat_pt2e(exported(module, device), quantizer(is_qat=True))
        optimizer = torch.optim.SGD(prepared.parameters(), lr=0.01)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = prepared(images(device)).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    assert train(DEVICE) == pytest.approx(train("cpu"), rel=1e-4)
