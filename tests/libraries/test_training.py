# SPDX-License-Identifier: BSD-3-Clause
"""Each of these libraries trains a small model on the device, with the settings that docs/using/libraries.md names."""

import subprocess
import sys
from pathlib import Path

import lightning
import pytest
import torch
from accelerate import Accelerator
from lightning.pytorch.strategies import SingleDeviceStrategy
from lightning_accelerator import OpenregAccelerator
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset
from torchao.optim import AdamW8bit
from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
from torchao.quantization.qat import QATConfig
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

import torch_openreg  # noqa: F401  (brings the device up)

DEVICE = "openreg"
FEATURES = 64
# The libraries use what PyTorch has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def data():
    """Inputs, and what a model is to learn of them."""
    inputs = torch.randn(256, FEATURES)
    return inputs, (inputs @ torch.randn(FEATURES, 1)).tanh()


def model():
    return nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 1))


def train(network, optimizer, inputs, targets, steps):
    """The losses of the first and of the last step."""
    losses = []
    for _ in range(steps):
        loss = functional.mse_loss(network(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses[0], losses[-1]


def test_accelerate_trains_and_safetensors_keeps_the_weights(data, tmp_path, monkeypatch):
    monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", DEVICE)
    accelerator = Accelerator()
    network = model()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    network, optimizer, loader = accelerator.prepare(
        network, optimizer, DataLoader(TensorDataset(*data), batch_size=32)
    )
    losses = []
    for _ in range(10):
        for inputs, targets in loader:
            loss = functional.mse_loss(network(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    accelerator.save_model(network, tmp_path)
    kept = load_file(tmp_path / "model.safetensors", device=0)
    for name, weight in accelerator.unwrap_model(network).state_dict().items():
        assert kept[name].device == torch.device(DEVICE, 0)
        assert torch.equal(kept[name], weight)


def test_the_trainer_of_transformers_trains(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", DEVICE)
    tokens = torch.arange(16) + torch.randint(0, 40, (128, 1))
    config = GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=64, n_positions=16, bos_token_id=0, eos_token_id=0)
    arguments = TrainingArguments(
        output_dir=str(tmp_path),
        num_train_epochs=6,
        per_device_train_batch_size=16,
        learning_rate=5e-3,
        logging_steps=8,
        report_to=[],
        save_strategy="no",
    )
    dataset = [{"input_ids": row, "labels": row} for row in tokens]
    trainer = Trainer(model=GPT2LMHeadModel(config), args=arguments, train_dataset=dataset)
    trainer.train()
    assert trainer.model.device.type == DEVICE
    losses = [float(entry["loss"]) for entry in trainer.state.log_history if "loss" in entry]
    assert losses[-1] < losses[0] / 2


class Module(lightning.LightningModule):
    """A model as Lightning takes it."""

    def __init__(self):
        super().__init__()
        self.network = model()
        self.losses = []

    def training_step(self, batch):
        inputs, targets = batch
        loss = functional.mse_loss(self.network(inputs), targets)
        self.losses.append(loss.detach())
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


def test_lightning_trains_with_an_accelerator_of_its_own(data, tmp_path):
    module = Module()
    strategy = SingleDeviceStrategy(torch.device(DEVICE, 0), accelerator=OpenregAccelerator())
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = lightning.Trainer(max_epochs=10, strategy=strategy, default_root_dir=tmp_path, **quiet)
    trainer.fit(module, DataLoader(TensorDataset(*data), batch_size=32))
    assert module.losses[0].device == torch.device(DEVICE, 0)
    assert module.losses[-1] < module.losses[0] / 2


def test_lightning_chooses_the_cpu_by_itself(tmp_path):
    assert lightning.Trainer(logger=False, default_root_dir=tmp_path).strategy.root_device.type == "cpu"


def test_torchao_trains_for_quantization_and_quantizes(data):
    inputs, targets = (tensor.to(DEVICE) for tensor in data)
    network = model().to(DEVICE)
    base = Int8DynamicActivationIntxWeightConfig()
    quantize_(network, QATConfig(base, step="prepare"))
    first, last = train(network, torch.optim.Adam(network.parameters(), lr=1e-2), inputs, targets, 60)
    assert last < first / 2
    quantize_(network, QATConfig(base, step="convert"))
    with torch.no_grad():
        assert functional.mse_loss(network(inputs), targets).item() < first / 2


def test_an_optimizer_of_torchao_keeps_its_state_in_eight_bits(data):
    inputs, targets = (tensor.to(DEVICE) for tensor in data)
    network = nn.Sequential(nn.Linear(FEATURES, 256), nn.ReLU(), nn.Linear(256, 1)).to(DEVICE)
    optimizer = AdamW8bit(network.parameters(), lr=1e-2)
    first, last = train(network, optimizer, inputs, targets, 20)
    assert last < first / 2
    assert type(optimizer.state[network[0].weight]["exp_avg"]).__name__ == "OptimState8bit"


def test_torchtitan_trains(tmp_path):
    program = Path(__file__).with_name("torchtitan_program.py")
    command = (sys.executable, str(program))
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    device, *losses = done.stdout.split()
    assert device == DEVICE
    assert [float(loss) for loss in losses] == sorted(map(float, losses), reverse=True)
