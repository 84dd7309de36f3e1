# SPDX-License-Identifier: BSD-3-Clause
"""Device names are hard-coded in libraries where docs/using/libraries.md says so, and its workarounds work."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import accelerate
import pytest
import torch
import torch.distributed
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn
from torch.distributed._shard import sharded_tensor
from torch.distributed._shard.sharding_spec import EnumerableShardingSpec, ShardMetadata
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, zeros
from torch.nn.attention.flex_attention import flex_attention
from torch.testing._internal.distributed.fake_pg import FakeStore
from transformers import TrainingArguments

import torch_openreg  # noqa: F401  (brings the device up)

DEVICE = "openreg"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "using" / "libraries.md"
# The places that the page names, each with what has to stand in that line.
PLACES = {
    "accelerate/utils/modeling.py:816": "torch.cuda.device_count()",
    "accelerate/state.py:182": "ACCELERATE_TORCH_DEVICE",
    "transformers/training_args.py:1778": "is_torch_bf16_gpu_available()",
    "lightning/fabric/utilities/device_parser.py:219": "CUDAAccelerator.is_available()",
    "torchtitan/models/common/config_utils.py:99": "sdpa is no longer supported",
    "torch/utils/dlpack.py:168": "kDLCUDA",
    "torch/distributed/_shard/sharded_tensor/_ops/tensor_ops.py:54": "torch.cuda.current_device()",
    "torch/nn/attention/flex_attention.py:2091": "supported_devices",
}


def model():
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))


def devices(module):
    return {str(parameter.device) for parameter in module.parameters()}


def in_a_new_process(text, **settings):
    """What the last line of a program's output says."""
    environment = {**os.environ, **settings}
    command = (sys.executable, "-c", text)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=True)
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("place", PLACES)
def test_the_page_names_the_line(place):
    path, _, number = place.partition(":")
    package, _, rest = path.partition("/")
    (folder,) = importlib.util.find_spec(package).submodule_search_locations
    assert PLACES[place] in (Path(folder) / rest).read_text("utf-8").splitlines()[int(number) - 1]
    assert place in PAGE.read_text("utf-8")


def test_safetensors_takes_the_number_of_a_device(tmp_path):
    path = tmp_path / "weights.safetensors"
    save_file({"weight": torch.ones(3, device=DEVICE)}, path)
    with pytest.raises(SafetensorError, match="device openreg is invalid"), safe_open(path, "pt", device=DEVICE):
        pass
    with safe_open(path, "pt", device=1) as file:
        assert file.get_tensor("weight").device == torch.device(DEVICE, 1)


def test_a_device_map_names_the_device():
    assert accelerate.infer_auto_device_map(model()) == {"": "cpu"}
    placed = accelerate.dispatch_model(model(), {"0": 0, "1": 1})
    assert devices(placed) == {"openreg:0", "openreg:1"}
    assert placed(torch.ones(2, 4)).shape == (2, 4)


@pytest.mark.parametrize(
    "program",
    [
        "import accelerate; print(accelerate.Accelerator().device.type)",
        "from transformers import TrainingArguments as T; print(T(output_dir='.', report_to=[]).device.type)",
    ],
)
def test_accelerate_and_the_trainer_learn_the_device_from_the_environment(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ACCELERATE_TORCH_DEVICE", raising=False)
    text = f"import torch_openreg\n{program}"
    assert in_a_new_process(text) == "cpu"
    assert in_a_new_process(text, ACCELERATE_TORCH_DEVICE=DEVICE) == DEVICE


def test_bfloat16_is_asked_of_accelerate_and_not_of_the_trainer(tmp_path):
    with pytest.raises(ValueError, match="doesn't support bf16/gpu"):
        TrainingArguments(output_dir=str(tmp_path), bf16=True)
    text = """
import accelerate, torch, torch_openreg
mixed = accelerate.Accelerator(mixed_precision="bf16")
model = mixed.prepare(torch.nn.Linear(4, 4))
with mixed.autocast():
    print(mixed.device.type, torch.mm(torch.ones(2, 2, device="openreg"), torch.ones(2, 2, device="openreg")).dtype)
"""
    assert in_a_new_process(text, ACCELERATE_TORCH_DEVICE=DEVICE) == f"{DEVICE} torch.bfloat16"


class Producer:
    """Memory of the device that another library owns."""

    def __init__(self, tensor):
        self.tensor = tensor
        self.told = []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **how):
        self.told.append(how)
        return self.tensor.__dlpack__()


def test_a_producer_gets_no_stream_and_is_waited_for():
    producer = Producer(torch.ones(3, device=DEVICE).mul_(2))
    torch.accelerator.synchronize()  # the way out: what the producer queued is done
    taken = torch.from_dlpack(producer)
    assert taken.tolist() == [2, 2, 2]
    (how,) = producer.told
    assert how.get("stream") is None


@pytest.fixture
def rank_without_shards():
    torch.distributed.init_process_group("fake", rank=1, world_size=2, store=FakeStore())
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("rank_without_shards")
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_sharded_tensor_without_shards_asks_for_cuda_and_a_dtensor_does_not():
    spec = EnumerableShardingSpec([ShardMetadata([0, 0], [4, 4], "rank:0/openreg:0")])
    sharded = sharded_tensor.empty(spec, 4, 4)
    with pytest.raises((AssertionError, RuntimeError), match=r"CUDA"):
        _ = sharded.device
    mesh = init_device_mesh(DEVICE, (2,))
    assert zeros(1, 4, device_mesh=mesh, placements=[Shard(0)]).device.type == DEVICE


def test_flex_attention_has_a_list_of_devices():
    query = torch.ones(1, 1, 16, 16, device=DEVICE)
    with pytest.raises(ValueError, match="Found input tensors on openreg device"):
        flex_attention(query, query, query)
    assert nn.functional.scaled_dot_product_attention(query, query, query).device.type == DEVICE
