# SPDX-License-Identifier: BSD-3-Clause
"""Parts of torch.distributed that use the device module work on PyTorch's fake process group of two ranks."""

import pytest
import torch
import torch.distributed.checkpoint as distributed_checkpoint
from torch import distributed, nn
from torch.distributed import tensor as distributed_tensor
from torch.distributed._tools.memory_tracker import MemoryTracker
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

# They warn of what is deprecated or experimental in themselves.
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
    pytest.mark.filterwarnings("ignore::FutureWarning:torch"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch"),
]


@pytest.fixture(scope="module")
def mesh():
    distributed.init_process_group("openreg:fake", rank=0, world_size=2, store=FakeStore())
    yield init_device_mesh("openreg", (2,))
    distributed.destroy_process_group()


def module():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)).to("openreg:0")


MESH = """
import warnings, torch
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore
warnings.simplefilter("ignore")
distributed.init_process_group("openreg:fake", rank=1, world_size=2, store=FakeStore())
print(init_device_mesh("openreg", (2,)).device_type, torch.openreg.current_device())
distributed.destroy_process_group()
"""


@pytest.mark.covers("module.device_count", "module.set_device", "module.is_initialized")
@pytest.mark.parametrize("variables", [{"LOCAL_RANK": "1"}, {}], ids=["named", "by rank"])
def test_a_mesh_chooses_the_device_of_its_rank(python, variables):
    result = python(MESH, **variables)
    assert result.stdout.split() == ["openreg", "1"], result.stderr


@pytest.mark.covers("module.get_rng_state")
def test_a_distributed_tensor_draws_from_the_devices_state(mesh):
    drawn = []
    for _ in range(2):
        torch.manual_seed(5)
        before = torch.openreg.get_rng_state(0)
        x = distributed_tensor.rand(6, 4, device_mesh=mesh, placements=[distributed_tensor.Shard(0)])
        assert x.to_local().shape == (3, 4)
        assert x.to_local().device == torch.device("openreg:0")
        after = torch.openreg.get_rng_state(0)
        assert after.shape == (16,)
        assert torch.equal(after[:8], before[:8])  # the seed
        assert not torch.equal(after[8:], before[8:])  # the offset moved on
        drawn.append(x.to_local().cpu())
    assert torch.equal(*drawn)


@pytest.mark.covers("module.Stream", "module.Event", "private_use1_hooks.resizePrivateUse1Bytes")
def test_a_fully_sharded_module_trains(mesh):
    model = module()
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = [parameter.to_local().clone() for parameter in model.parameters()]
    model(torch.ones(2, 8, device="openreg:0")).sum().backward()
    optimizer.step()
    assert all(isinstance(parameter, distributed_tensor.DTensor) for parameter in model.parameters())
    assert before[0].shape == (4, 8)
    assert not torch.equal(before[-1].cpu(), model[2].bias.to_local().cpu())


def test_the_older_fully_sharded_module_gives_its_state(mesh):
    model = FullyShardedDataParallel(nn.Linear(8, 8), device_id=torch.device("openreg:0"))
    model(torch.ones(2, 8, device="openreg:0")).sum().backward()
    assert {name: tuple(value.shape) for name, value in model.state_dict().items()} == {"weight": (8, 8), "bias": (8,)}


@pytest.mark.covers("module.current_stream")
def test_a_distributed_checkpoint_is_saved_and_loaded(tmp_path):
    saved = {"x": torch.arange(4.0, device="openreg:1")}
    with torch.openreg.device(1):  # PyTorch's writer waits for a stream of the current device only
        distributed_checkpoint.save(saved, checkpoint_id=tmp_path, no_dist=True)
    loaded = {"x": torch.zeros(4, device="openreg:0")}
    distributed_checkpoint.load(loaded, checkpoint_id=tmp_path, no_dist=True)
    assert loaded["x"].device == torch.device("openreg:0")
    assert loaded["x"].tolist() == [0, 1, 2, 3]


@pytest.mark.covers("module.memory_stats", "module.memory_allocated", "module.memory_reserved")
def test_the_memory_tracker_sees_what_operators_allocate(capsys):
    torch.openreg.reset_accumulated_memory_stats()  # other tests run out of memory on purpose
    model = module()
    tracker = MemoryTracker()
    tracker.start_monitor(model)
    x = torch.ones(1 << 18, 8, device="openreg:0")
    model(x).sum().backward()
    tracker.stop()
    tracker.summary()
    assert "alloc retries are: 0" in capsys.readouterr().out
    assert max(megabytes for _, megabytes in tracker.memories_allocated.values()) >= 8
