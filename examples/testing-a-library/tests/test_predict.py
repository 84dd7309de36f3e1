# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from chunkwise import average, default_device, predict
from torch import nn


def model_on(device):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 1024), nn.ReLU(), nn.Linear(1024, 2)).to(device)


def test_answers_are_those_of_one_pass(device):
    model, data = model_on(device), torch.randn(100, 8)
    expected = model_on("cpu")(data).detach()
    torch.testing.assert_close(predict(model, data, device=device, chunk=7), expected)


def test_the_accelerator_is_the_default(device):
    assert default_device().type == device.type


def test_models_of_several_devices_are_averaged(two_devices):
    models = [nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).to(device) for device in two_devices]
    mean = average(models)
    assert {tensor.device for tensor in mean.values()} == {two_devices[0]}
    expected = sum(model[0].weight.cpu() for model in models) / len(models)
    torch.testing.assert_close(mean["0.weight"].cpu(), expected)
    models[0].load_state_dict(mean)


def test_a_tensor_on_the_wrong_device_is_refused(two_devices):
    here, there = two_devices
    with pytest.raises(RuntimeError, match="same device"):
        model_on(there)(torch.randn(1, 8, device=here))
    with pytest.raises(RuntimeError, match="same device"):
        model_on(there)(torch.randn(1, 8))
