# SPDX-License-Identifier: BSD-3-Clause
"""Functions for the ranks of test_training.py: one training in every kind of parallelism. Each returns its losses."""

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
    """Two layers, a normalization and a residual connection."""

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


def normalized() -> nn.Sequential:
    """A model whose statistics are those of the whole batch, on however many ranks that is."""
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), nn.BatchNorm1d(WIDTH), nn.ReLU(), nn.Linear(WIDTH, 4))
    return nn.SyncBatchNorm.convert_sync_batchnorm(layers).to("openreg")


def sync_batch_norm(rank: int, size: int) -> tuple[list[float], list[float]]:
    """The losses, and the running statistics. One process calculates as BatchNorm does."""
    module = normalized()
    whole = nn.parallel.DistributedDataParallel(module, broadcast_buffers=False) if size > 1 else module
    return train(whole, rank, size), [*module[1].running_mean.tolist(), *module[1].running_var.tolist()]


def sync_batch_norm_of_parts(rank: int, size: int) -> None:
    """Ranks with different numbers of samples, one of them with none: outputs and gradients of the whole batch."""
    rows, channels = [3, 0, 5][:size], 4
    generator = torch.Generator().manual_seed(0)
    whole = (torch.randn(sum(rows), channels, 2, generator=generator) * 3 + 5).to("openreg")
    slope = torch.randn(whole.shape, generator=generator).to("openreg")
    alone, module = nn.BatchNorm1d(channels).to("openreg"), nn.SyncBatchNorm(channels).to("openreg")
    expected_in = whole.clone().requires_grad_()
    expected = alone(expected_in)
    expected.backward(slope)
    mine = whole.split(rows)[rank].clone().requires_grad_()
    output = module(mine)
    output.backward(slope.split(rows)[rank])
    close = {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(output, expected.split(rows)[rank], **close)
    if rows[rank]:
        torch.testing.assert_close(mine.grad, expected_in.grad.split(rows)[rank], **close)
    gradient = module.weight.grad if module.weight.grad is not None else torch.zeros(channels, device="openreg")
    distributed.all_reduce(gradient)
    torch.testing.assert_close(gradient, alone.weight.grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(module.running_var, alone.running_var, **close)


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
