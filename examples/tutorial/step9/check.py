# SPDX-License-Identifier: BSD-3-Clause
"""Shows what step 9 can do. The exit status is 0 if all of it is right."""

import tempfile
import warnings
from pathlib import Path

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

SIZE = 2
STEPS = 5


def collectives(rank, store):
    """Compares each collective with the expected result."""
    mine = torch.full((2,), float(rank + 1), device="pocket")
    total, mean = mine.clone(), mine.clone()
    distributed.all_reduce(total)
    distributed.all_reduce(mean, distributed.ReduceOp.AVG)
    assert total.tolist() == [3, 3]
    assert mean.tolist() == [1.5, 1.5]
    gathered = torch.empty(4, device="pocket")
    distributed.all_gather_into_tensor(gathered, mine)
    assert gathered.tolist() == [1, 1, 2, 2]
    part = torch.empty(2, device="pocket")
    distributed.reduce_scatter_tensor(part, gathered * (rank + 1))
    assert part.tolist() == [3 * (rank + 1)] * 2
    distributed.broadcast(mine, 1)
    assert mine.tolist() == [2, 2]
    objects = [None] * SIZE
    distributed.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": 0}, {"rank": 1}]


def order(rank, store):
    """Lets one process be late: the other goes on, and its stream waits only for the sum."""
    x = torch.full((2,), float(rank + 1), device="pocket")
    if rank == 1:
        store.wait(["go on"])
    work = distributed.all_reduce(x, async_op=True)
    if rank == 0:
        assert not work.is_completed()
        assert (torch.ones(2, device="pocket") + 1).tolist() == [2, 2]  # the device is free meanwhile
        work.wait()
        y = x * 2
        assert not torch.pocket.current_stream().query()
        store.set("go on", "")
        assert y.tolist() == [6, 6]
    distributed.barrier()


def failure(rank, store):
    """Lets a collective fail on its own stream: what reads the result gets the error."""
    x = torch.ones(2, device="pocket")
    distributed.all_reduce(x, distributed.ReduceOp.BAND)  # Gloo has it for integers only
    errors = []
    for read in (x.tolist, torch.accelerator.synchronize):  # the stream of the group has the error, too
        try:
            read()
        except RuntimeError as error:
            errors.append(str(error))
    assert ["BAND" in error for error in errors] == [True, True], errors


def make_model():
    """Returns a model, the same one in every process."""
    torch.manual_seed(0)
    layers = torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)
    return torch.nn.Sequential(*layers).to("pocket")


def train(model, rank=0, size=1):
    """Trains on this process's part of the batches, and returns the loss of each step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    losses = []
    for step in range(STEPS):
        batch = torch.randn(8, 8, generator=torch.Generator().manual_seed(step)).to("pocket").chunk(size)[rank]
        loss = (model(batch) - batch.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss = loss.detach()
        if size > 1:
            distributed.all_reduce(loss, distributed.ReduceOp.AVG)
        losses.append(loss.item())
    return losses


def replicated(rank, store):
    """Trains with the whole model in each process."""
    return train(DistributedDataParallel(make_model()), rank, SIZE)


def sharded(rank, store):
    """Trains with a part of each parameter in each process."""
    from torch.distributed.fsdp import fully_shard

    model = make_model()
    for layer in (model[0], model[2], model):
        fully_shard(layer)
    return train(model, rank, SIZE)


def process(rank, file, results):
    """Runs all parts in one process of the group."""
    warnings.simplefilter("ignore")  # PyTorch's own, of what is experimental
    torch.pocket.set_device(rank)
    distributed.init_process_group("pccl", init_method=f"file://{file}", rank=rank, world_size=SIZE)
    store = distributed.distributed_c10d._get_default_store()
    returned = [part(rank, store) for part in (collectives, order, failure, replicated, sharded)]
    if rank == 0:
        results.put(returned[3:])
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        results = torch.multiprocessing.get_context("spawn").SimpleQueue()
        torch.multiprocessing.spawn(process, args=(str(Path(folder) / "store"), results), nprocs=SIZE)
        of_copies, of_parts = results.get()
    print("collectives give each process what they have to give")
    print("a collective returns at once; only what needs its result waits for a process that is late")
    print("the error of a collective reaches what needs its result")
    alone = train(make_model())
    torch.testing.assert_close(torch.tensor(of_copies), torch.tensor(alone))
    print("DistributedDataParallel on two processes trains as one process does")
    torch.testing.assert_close(torch.tensor(of_parts), torch.tensor(alone))
    print("so does a model whose parameters are sharded")
