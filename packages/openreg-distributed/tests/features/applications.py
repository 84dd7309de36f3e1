# SPDX-License-Identifier: BSD-3-Clause
"""Functions for the ranks of test_applications.py."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import openreg_compile  # noqa: F401  (for compiled functions)

WIDTH = 8


def current() -> torch.device:
    return torch.device("openreg", torch.openreg.current_device())


def values(*shape: int, seed: int = 0) -> torch.Tensor:
    """The same on every rank."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to("openreg")


def layers() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH)).to("openreg")


def gradients(module: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    module.zero_grad()
    module(x).square().mean().backward()
    return [parameter.grad for parameter in module.parameters()]


def check_gradients(module: nn.Module, rank: int, size: int, *, near: float = 1e-6, steps: int = 1) -> None:
    """Those of a module of all ranks are those of one process with the whole batch."""
    x = values(2 * size, WIDTH)
    for _ in range(steps):
        found = gradients(module, x.chunk(size)[rank])
    for one, other in zip(found, gradients(layers(), x), strict=True):
        torch.testing.assert_close(one, other, rtol=near, atol=near)


def bf16_compressed(state: Any, bucket: Any) -> Any:
    """PyTorch's hook, which it refuses by name where no CUDA is."""
    return default_hooks.bf16_compress_hook(state, bucket)


bf16_compressed.__annotations__.clear()  # PyTorch compares them, and here they are text


def hooks(rank: int, size: int) -> None:
    """DDP's hooks for communication: compressed, and of a state."""
    for hook, near in ((default_hooks.allreduce_hook, 1e-6), (default_hooks.fp16_compress_hook, 2e-3),
                       (bf16_compressed, 2e-2)):  # fmt: skip
        module = DistributedDataParallel(layers())
        module.register_comm_hook(None, hook)
        check_gradients(module, rank, size, near=near)
    module = DistributedDataParallel(layers())
    module._register_builtin_comm_hook(distributed.BuiltinCommHookType.FP16_COMPRESS)
    check_gradients(module, rank, size, near=2e-3)
    module = DistributedDataParallel(layers())
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=WIDTH, start_powerSGD_iter=2)
    module.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    check_gradients(module, rank, size, near=1e-5, steps=4)


def refusals(rank: int, size: int) -> dict[str, tuple[str, str]]:
    """What PyTorch itself refuses by the name of the group."""
    module = DistributedDataParallel(layers())
    calls = {
        "bf16 hook": lambda: module.register_comm_hook(None, default_hooks.bf16_compress_hook),
        "monitored barrier": distributed.monitored_barrier,
    }
    told = {}
    for name, call in calls.items():
        try:
            call()
        except Exception as error:
            told[name] = (type(error).__name__, str(error))
    distributed.monitored_barrier(distributed.new_group(backend="gloo"))  # the way out
    return told


def step_times(rank: int, size: int) -> dict[str, float]:
    """What DDP measured of its steps."""
    module = DistributedDataParallel(layers())
    for _ in range(3):
        gradients(module, values(2, WIDTH))
        torch.openreg.synchronize()
    return {name: value for name, value in module._get_ddp_logging_data().items() if name.endswith("_time")}


def accumulated(rank: int, size: int) -> None:
    """Gradients of steps without communication are added to those of the step with it."""
    module, x = DistributedDataParallel(layers()), values(4 * size, WIDTH)
    first, second = (half.chunk(size)[rank] for half in x.chunk(2))
    with module.no_sync():
        module(first).square().mean().backward()
    module(second).square().mean().backward()
    alone = layers()
    (alone(x.chunk(2)[0]).square().mean() + alone(x.chunk(2)[1]).square().mean()).backward()
    for one, other in zip(module.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-6, atol=1e-6)


def uneven(rank: int, size: int) -> None:
    """Ranks with different numbers of batches."""
    module = DistributedDataParallel(layers())
    with Join([module]):
        for _ in range(2 + rank):
            gradients(module, values(2, WIDTH))


def differentiable(rank: int, size: int) -> None:
    """Gradients through collectives: each rank weighs what it gets by its number."""
    from torch.distributed import _functional_collectives as collectives
    from torch.distributed.nn import functional as of_nn

    weight = float(rank + 1)
    total = float(sum(range(1, size + 1)))

    def gradient(call: Any, expected: float) -> None:
        x = torch.ones(size, 2, device="openreg", requires_grad=True)
        (call(x) * weight).sum().backward()
        assert x.grad.tolist() == [[expected] * 2] * size, call

    def room() -> torch.Tensor:
        return torch.empty(1, 2, device="openreg")

    world = distributed.group.WORLD
    gradient(of_nn.all_reduce, total)
    gradient(lambda x: torch.cat(of_nn.all_gather(x)), total)
    gradient(lambda x: of_nn.broadcast(x, 0), total if rank == 0 else 0.0)
    gradient(lambda x: of_nn.reduce(x, 0), 1.0)
    gradient(lambda x: collectives.all_gather_tensor_autograd(x, 0, world), total)
    one_row = torch.ones(size, 2, device="openreg", requires_grad=True)
    (of_nn.reduce_scatter(room(), list(one_row.split(1))) * weight).sum().backward()
    assert one_row.grad.tolist() == [[float(other + 1)] * 2 for other in range(size)]
    rows = torch.ones(size, 2, device="openreg", requires_grad=True)
    (of_nn.all_to_all_single(torch.empty_like(rows), rows) * weight).sum().backward()
    assert rows.grad.tolist() == [[float(other + 1)] * 2 for other in range(size)]


def meshes(rank: int, size: int) -> None:
    """Meshes of one to three dimensions, parts of them, and dimensions that are joined; on four ranks."""
    line = init_device_mesh("openreg", (size,))
    grid = init_device_mesh("openreg", (2, 2), mesh_dim_names=("data", "model"))
    cube = init_device_mesh("openreg", (2, 1, 2), mesh_dim_names=("pipe", "data", "model"))
    made = [
        (line.get_group(), range(size)),
        (grid["data"].get_group(), range(rank % 2, size, 2)),
        (grid["model"].get_group(), range(rank - rank % 2, rank - rank % 2 + 2)),
        (cube["data"].get_group(), [rank]),
        (cube["data", "model"]._flatten("joined").get_group(), range(rank - rank % 2, rank - rank % 2 + 2)),
        (DeviceMesh.from_group(distributed.group.WORLD, "openreg").get_group(), range(size)),
    ]
    for group, members in made:
        tensor = torch.full((3,), float(rank), device="openreg")
        distributed.all_reduce(tensor, group=group)
        assert tensor.tolist() == [sum(members)] * 3
    assert list(grid.get_coordinate()) == [rank // 2, rank % 2]


def attention_of_parts(rank: int, size: int) -> None:
    """DTensor divides the heads or the batch of attention, and gathers what is divided otherwise."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("openreg", (size,))

    def attend(query, key, value, mask, **options):
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, **options)

    def check(heads: tuple[int, int], batch: list[int], mask_shape: list[int] | None, placement: Any, kept: bool):
        options = {"enable_gqa": heads[0] != heads[1], "is_causal": mask_shape is None}
        shapes = [[*batch, count, 5, WIDTH] for count in (heads[0], heads[1], heads[1])]
        operands = [values(*shape, seed=i) for i, shape in enumerate(shapes)]
        mask = None if mask_shape is None else values(*mask_shape)
        whole = [None if x is None else x.clone().requires_grad_() for x in (*operands, mask)]
        expected = attend(*whole, **options)
        slope = values(*expected.shape, seed=9)
        expected.backward(slope)
        divided = [distribute_tensor(x, mesh, [placement]).requires_grad_() for x in operands]
        divided.append(None if mask is None else distribute_tensor(mask, mesh, [Replicate()]).requires_grad_())
        result = attend(*divided, **options)
        result.backward(distribute_tensor(slope, mesh, [placement]))
        assert result.placements == ((placement,) if kept else (Replicate(),))
        torch.testing.assert_close(result.full_tensor(), expected)
        for one, other in zip(divided, whole, strict=True):
            if one is not None:
                torch.testing.assert_close(one.grad.full_tensor(), other.grad, rtol=1e-4, atol=1e-5)

    check((4, 4), [3], None, Shard(1), True)
    check((4, 2), [3], None, Shard(1), True)
    check((6, 3), [3], None, Shard(1), False)  # three heads do not divide as the six that share them
    check((4, 4), [3], None, Shard(0), True)
    check((4, 4), [], None, Shard(0), True)
    check((4, 4), [3], None, Shard(2), False)
    check((4, 4), [3], [3, 4, 5, 5], Shard(1), True)
    check((4, 4), [3], [1, 1, 5, 5], Shard(1), True)
    check((4, 4), [3], [5, 5], Shard(0), True)


def random_numbers(rank: int, size: int) -> None:
    """DTensor draws: rows of a matrix are those of one process, no two shards are alike, and all ranks go on alike."""
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("openreg", (size,))
    draws = {
        "uniform": lambda tensor: tensor.uniform_(-1, 1),
        "normal": lambda tensor: tensor.normal_(),
        "init": lambda tensor: nn.init.kaiming_uniform_(tensor),
        "dropout": lambda tensor: functional.dropout(tensor, 0.5),
    }
    for (name, draw), dtype in itertools.product(draws.items(), (torch.bfloat16, torch.float32, torch.float64)):
        # One process draws alone, and then the ranks together, from the same seed.
        ones = torch.ones(8, 16, device="openreg", dtype=dtype)
        torch.manual_seed(3)
        alone = draw(ones.clone())
        after = torch.rand(4, device="openreg")
        for placement in (Replicate(), Shard(0), Shard(1)):
            together = distribute_tensor(ones, mesh, [placement])
            torch.manual_seed(3)
            drawn = draw(together)
            assert isinstance(drawn, DTensor)
            assert drawn.placements == (placement,)
            whole = drawn.full_tensor()
            assert torch.equal(torch.rand(4, device="openreg"), after), (name, dtype, placement)
            if placement != Shard(1):  # DTensor gives a rank consecutive numbers, and columns are not consecutive
                assert torch.equal(whole, alone), (name, dtype, placement)
            else:
                assert not torch.equal(*whole.chunk(2, placement.dim)), (name, dtype, placement)
                assert (0.3 < (whole == 0).float().mean() < 0.7) == (name == "dropout")


def contexts(rank: int, size: int, is_causal: bool) -> None:
    """Attention over a sequence of which each rank has a part, with its gradients."""
    from torch.distributed.tensor.experimental import _attention, context_parallel

    mesh = init_device_mesh("openreg", (size,))
    operands = [values(2, 3, 8, WIDTH, seed=i) for i in range(3)]
    whole = [x.clone().requires_grad_() for x in operands]
    expected = functional.scaled_dot_product_attention(*whole, is_causal=is_causal)
    slope = values(*expected.shape, seed=9)
    expected.backward(slope)
    _attention._cp_options.enable_load_balance = is_causal  # PyTorch balances what is causal alone
    buffers = [*operands, slope]
    with context_parallel(mesh, buffers=buffers, buffer_seq_dims=[2] * 4):
        parts = [x.clone().requires_grad_() for x in operands]
        assert parts[0].shape[2] == 8 // size
        output = functional.scaled_dot_product_attention(*parts, is_causal=is_causal)
        output.backward(slope)
        results = [output.detach(), *(part.grad for part in parts)]
        together = _attention.context_parallel_unshard(mesh, results, [2] * 4)
    for one, other in zip(together, [expected, *(x.grad for x in whole)], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def masked_context(rank: int, size: int) -> tuple[str, str]:
    from torch.distributed.tensor.experimental import context_parallel

    operands = [values(2, 3, 8, WIDTH, seed=i) for i in range(3)]
    try:
        with context_parallel(init_device_mesh("openreg", (size,)), buffers=operands, buffer_seq_dims=[2] * 3):
            mask = torch.zeros(1, 1, 8 // size, 8, device="openreg")
            functional.scaled_dot_product_attention(*operands, attn_mask=mask)
    except NotImplementedError as error:
        return type(error).__name__, str(error)
    return "", ""


def schedules(rank: int, size: int, name: str) -> None:
    """Pipelines with several stages on a rank: the loss and the gradients of one process."""
    from torch.distributed import pipelining

    torch.manual_seed(0)
    parts = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()).to("openreg") for _ in range(2 * size)]
    alone = copy.deepcopy(nn.Sequential(*parts))
    x, target = values(8, WIDTH), values(8, WIDTH, seed=1)
    functional.mse_loss(alone(x), target).backward()
    # Where the second half goes back, the last stage is on the first rank.
    mine = (rank, 2 * size - 1 - rank) if name == "ScheduleZBVZeroBubble" else (rank, rank + size)
    stages = [pipelining.PipelineStage(parts[i], i, 2 * size, current()) for i in mine]
    schedule = getattr(pipelining.schedules, name)(stages, 4, loss_fn=functional.mse_loss)
    losses: list[torch.Tensor] = []
    schedule.step(*([x] if 0 in mine else []), target=target, losses=losses)
    if 2 * size - 1 in mine:
        torch.testing.assert_close(torch.stack(losses).mean(), functional.mse_loss(alone(x), target))
    for i in mine:
        for one, other in zip(parts[i].parameters(), alone[i].parameters(), strict=True):
            torch.testing.assert_close(one.grad, other.grad, rtol=1e-5, atol=1e-6)


def state_from_one_rank(rank: int, size: int) -> None:
    """A sharded model of which no rank has the whole, filled from the first rank, and read again."""
    from torch.distributed.checkpoint import state_dict
    from torch.distributed.fsdp import fully_shard

    expected = {name: value.cpu() for name, value in layers().state_dict().items()}
    with torch.device("meta"):
        module = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH))
    for layer in (module[0], module[2], module):
        fully_shard(layer)
    module.to_empty(device="openreg")
    options = state_dict.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    state_dict.set_model_state_dict(module, dict(expected) if rank == 0 else {}, options=options)
    options = state_dict.StateDictOptions(full_state_dict=True, cpu_offload=True)
    found = state_dict.get_model_state_dict(module, options=options)
    assert rank or {name: value.tolist() for name, value in found.items()} == {
        name: value.tolist() for name, value in expected.items()
    }
    assert float(torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)) == 0


def objects_of_the_device(rank: int, size: int) -> None:
    """Objects with tensors of the device, and between two ranks."""
    everything: list[Any] = [None] * size
    distributed.all_gather_object(everything, {"x": torch.full((2,), float(rank), device="openreg")})
    assert [one["x"].tolist() for one in everything] == [[float(other)] * 2 for other in range(size)]
    if rank == 0:
        distributed.send_object_list([1, "two"], 1)
    elif rank == 1:
        received: list[Any] = [None, None]
        distributed.recv_object_list(received, 0)
        assert received == [1, "two"]


def compiled_collectives(rank: int, size: int) -> None:
    """Collectives in a compiled function, functional ones and those of torch.distributed."""
    from torch.distributed import _functional_collectives as collectives

    world = distributed.group.WORLD

    def calculate(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        total = collectives.all_reduce(x * 2, "sum", world) + 1
        gathered = collectives.all_gather_tensor(x + total, 0, world)
        mine = collectives.reduce_scatter_tensor(gathered * 2, "avg", 0, world)
        swapped = collectives.all_to_all_single(mine, None, None, world)
        doubled = x * 2
        distributed.all_reduce(doubled)
        room = torch.empty(size * len(x), 2, device="openreg")
        distributed.all_gather_into_tensor(room, doubled)
        return total, gathered, mine, swapped, room + 1

    x = torch.full((size, 2), float(rank + 1), device="openreg")
    for one, other in zip(torch.compile(calculate, fullgraph=True)(x), calculate(x), strict=True):
        assert one.tolist() == other.tolist()


def compiled_model(rank: int, size: int, kind: str) -> None:
    """A model that is compiled and divided gives the gradients of one process."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    module: Any = layers()
    if kind == "ddp":
        check_gradients(torch.compile(DistributedDataParallel(module)), rank, size, near=1e-5, steps=2)
        return
    x = values(2 * size, WIDTH)
    expected = gradients(layers(), x)
    if kind == "fsdp2":
        for layer in (module[0], module[2]):
            layer.compile()
            fully_shard(layer)
        found = gradients(fully_shard(module), x.chunk(size)[rank])
    else:
        mesh = init_device_mesh("openreg", (size,))
        parallelize_module(module, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
        found = gradients(torch.compile(module), x)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.full_tensor(), other, rtol=1e-4, atol=1e-5)


def unnamed(rank: int, size: int) -> tuple[str, str]:
    """A group that was made without a name: all but DDP works, which tells what is amiss."""
    from torch.distributed.fsdp import fully_shard

    tensor = torch.full((3,), float(rank), device="openreg")
    distributed.all_reduce(tensor)
    assert tensor.tolist() == [sum(range(size))] * 3
    gradients(fully_shard(layers()), values(2, WIDTH))
    try:
        DistributedDataParallel(layers())
    except RuntimeError as error:
        return type(error).__name__, str(error)
    return "", ""


def named_by_the_device(rank: int, size: int) -> str:
    check_gradients(DistributedDataParallel(layers(), device_ids=[current()]), rank, size)
    return distributed.get_backend()
