# SPDX-License-Identifier: BSD-3-Clause
"""The same training in every kind of parallelism: each rank gives the losses of its steps."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn

with warnings.catch_warnings():  # of what PyTorch itself uses
    warnings.simplefilter("ignore")
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import CPUOffloadPolicy, FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

STEPS = 20
BATCH = 8
WIDTH = 16


class Block(nn.Module):
    """Two layers, a normalisation and a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.relu(self.up(self.norm(x))))


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(Block(), Block(), nn.Linear(WIDTH, 4)).to("openreg")


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of all ranks together."""
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(BATCH, WIDTH, generator=generator)
    return x.to("openreg"), x[:, :4].sin().to("openreg")


def part(tensor: torch.Tensor, rank: int, size: int) -> torch.Tensor:
    return tensor.chunk(size)[rank]


def train(
    module: nn.Module, rank: int = 0, size: int = 1, optimizer: Any = None, first: int = 0, count: int = STEPS
) -> list[float]:
    """The loss of each step, over the whole batch."""
    # Fused steps take no mixture of distributed and other parameters.
    optimizer = optimizer or torch.optim.Adam(module.parameters(), lr=1e-2, foreach=False)
    losses = []
    for step in range(first, first + count):
        x, target = (part(tensor, rank, size) for tensor in batch(step))
        optimizer.zero_grad()
        loss = (module(x) - target).square().mean()
        loss.backward()
        optimizer.step()
        shown = loss.detach()
        if isinstance(shown, DTensor):
            shown = shown.full_tensor()
        if size > 1:
            distributed.all_reduce(shown, distributed.ReduceOp.AVG)
        losses.append(shown.item())
    return losses


def alone(rank: int, size: int) -> list[float]:
    return train(model())


def ddp(rank: int, size: int, **options: Any) -> list[float]:
    module = nn.parallel.DistributedDataParallel(model(), device_ids=None, **options)
    return train(module, rank, size)


def ddp_static(rank: int, size: int) -> list[float]:
    return ddp(rank, size, static_graph=True, bucket_cap_mb=0.001)


def ddp_unused(rank: int, size: int) -> list[float]:
    return ddp(rank, size, find_unused_parameters=True, gradient_as_bucket_view=True)


def ddp_hook(rank: int, size: int) -> list[float]:
    """The average is made by a callback of a future."""

    def average(_state, bucket):  # PyTorch compares annotations, which are text in this file
        work = distributed.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda future: future.value()[0].div_(size))

    module = nn.parallel.DistributedDataParallel(model())
    module.register_comm_hook(None, average)
    return train(module, rank, size)


def zero(rank: int, size: int) -> list[float]:
    module = nn.parallel.DistributedDataParallel(model())
    optimizer = ZeroRedundancyOptimizer(module.parameters(), torch.optim.Adam, lr=1e-2)
    return train(module, rank, size, optimizer)


def fsdp1(rank: int, size: int) -> list[float]:
    module = FullyShardedDataParallel(model(), device_id=torch.device("openreg", torch.openreg.current_device()))
    return train(module, rank, size)


def sharded(module: nn.Sequential, **options: Any) -> nn.Module:
    for layer in module:
        fully_shard(layer, **options)
    return fully_shard(module, **options)


def fsdp2(rank: int, size: int) -> list[float]:
    return train(sharded(model(), mesh=init_device_mesh("openreg", (size,))), rank, size)


def fsdp2_mixed(rank: int, size: int) -> list[float]:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32, output_dtype=torch.float32)
    return train(sharded(model(), mesh=init_device_mesh("openreg", (size,)), mp_policy=policy), rank, size)


def fsdp2_offloaded(rank: int, size: int) -> list[float]:
    mesh = init_device_mesh("openreg", (size,))
    return train(sharded(model(), mesh=mesh, offload_policy=CPUOffloadPolicy()), rank, size)


def hsdp(rank: int, size: int) -> list[float]:
    mesh = init_device_mesh("openreg", (2, size // 2), mesh_dim_names=("replicate", "shard"))
    return train(sharded(model(), mesh=mesh), rank, size)


def tensor_parallel(rank: int, size: int) -> list[float]:
    """All ranks see the whole batch; the fused linear layers are divided."""
    mesh = init_device_mesh("openreg", (size,))
    module = model()
    for block in (module[0], module[1]):
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return train(module)


def sequence_parallel(rank: int, size: int) -> list[float]:
    """The rows are divided between the layers, too."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import PrepareModuleInput, PrepareModuleOutput

    mesh = init_device_mesh("openreg", (size,))
    module = model()
    for block in (module[0], module[1]):
        plan = {
            "norm": SequenceParallel(sequence_dim=0),
            "up": ColwiseParallel(input_layouts=Shard(0)),
            "down": RowwiseParallel(output_layouts=Shard(0), use_local_output=False),
        }
        parallelize_module(block, mesh, plan)
        edges = PrepareModuleInput(input_layouts=(Replicate(),), desired_input_layouts=(Shard(0),))
        parallelize_module(block, mesh, edges)
        parallelize_module(
            block, mesh, PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=Replicate())
        )
    return train(module)


def pipeline(rank: int, size: int, name: str) -> list[float]:
    """Half of the model on each of two ranks, four micro-batches."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    whole = model()
    module = nn.Sequential(whole[0]) if rank == 0 else nn.Sequential(whole[1], whole[2])
    device = torch.device("openreg", torch.openreg.current_device())
    stage = PipelineStage(module, rank, size, device)
    schedule = {"GPipe": ScheduleGPipe, "1F1B": Schedule1F1B}[name](
        stage, 4, loss_fn=lambda output, target: (output - target).square().mean()
    )
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-2)
    losses = []
    for step in range(STEPS):
        x, target = batch(step)
        optimizer.zero_grad()
        parts: list[torch.Tensor] = []
        if rank == 0:
            schedule.step(x)
        else:
            schedule.step(target=target, losses=parts)
        optimizer.step()
        shown = torch.stack(parts).mean() if rank == 1 else torch.zeros((), device="openreg")
        distributed.broadcast(shown, 1)
        losses.append(shown.item())
    return losses


def compiled_collective(rank: int, size: int) -> list[float]:
    """Functional collectives in a compiled function."""
    from torch.distributed import _functional_collectives as functional

    @torch.compile(backend="aot_eager", fullgraph=True)
    def summed(x: torch.Tensor) -> torch.Tensor:
        return functional.all_reduce(x * 2, "sum", distributed.group.WORLD) + 1

    return summed(torch.full((3,), float(rank), device="openreg")).tolist()


def checkpointed(rank: int, size: int, folder: str) -> list[float]:
    """Half of the steps sharded; then an asynchronous save, and the other half."""
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.checkpoint.state_dict import get_state_dict

    module = sharded(model(), mesh=init_device_mesh("openreg", (size,)))
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-2)
    losses = train(module, rank, size, optimizer, 0, STEPS // 2)
    weights, moments = get_state_dict(module, optimizer)
    control = distributed.new_group(backend="gloo")
    checkpoint.async_save(
        {"model": weights, "optimizer": moments}, checkpoint_id=folder, process_group=control
    ).result()
    return losses + train(module, rank, size, optimizer, STEPS // 2, STEPS - STEPS // 2)


def resumed(rank: int, size: int, folder: str) -> list[float]:
    """The second half, from the checkpoint, on however many ranks there are."""
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    assert Path(folder, ".metadata").exists()
    module: nn.Module = model()
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-2)
    weights, moments = get_state_dict(module, optimizer)
    state = {"model": weights, "optimizer": moments}
    checkpoint.load(state, checkpoint_id=folder, no_dist=True)
    set_state_dict(module, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    return train(module, optimizer=optimizer, first=STEPS // 2, count=STEPS - STEPS // 2)
