# SPDX-License-Identifier: BSD-3-Clause
"""A training program for torchrun, as users write it, which works with any number of processes and machines.

It trains a sharded model, saves after every few steps, and goes on from what was saved last. The folder that the
command line names holds the checkpoints and the losses; FAILURE says what happens to one rank, the first time.
"""

import os
import signal
import sys
import warnings
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed

warnings.simplefilter("ignore")  # PyTorch's own, of what is experimental

import torch.distributed.checkpoint as checkpoint  # noqa: E402
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402

import openreg_distributed  # noqa: E402, F401

STEPS = 12
EVERY = 4
FAILS_AT = 6


def fail(how: str) -> None:
    """Ends this process, or what it shares with others."""
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raises":
        raise SystemExit("a mistake")
    if how == "aborts":
        distributed.distributed_c10d._abort_process_group()


def latest(folder: Path) -> Path | None:
    return max(folder.glob("step*"), key=lambda path: int(path.name[4:]), default=None)


def main() -> None:
    folder = Path(sys.argv[1])
    torch.openreg.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("occl", timeout=timedelta(seconds=120))
    rank, size = distributed.get_rank(), distributed.get_world_size()
    attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
    (folder / f"attempt{attempt}").touch()

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)).to("openreg")
    for layer in (model[0], model[2], model):
        fully_shard(layer)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    first = 0
    if (saved := latest(folder)) is not None:
        weights, moments = get_state_dict(model, optimizer)
        state = {"model": weights, "optimizer": moments}
        checkpoint.load(state, checkpoint_id=saved)
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        first = int(saved.name[4:])

    for step in range(first, STEPS):
        if rank == size - 1 and step == FAILS_AT and attempt == "0":
            fail(os.environ.get("FAILURE", ""))
        batch = torch.randn(8, 8, generator=torch.Generator().manual_seed(step)).to("openreg").chunk(size)[rank]
        loss = (model(batch) - batch.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss = loss.detach()
        distributed.all_reduce(loss, distributed.ReduceOp.AVG)
        if rank == 0:
            with (folder / "losses").open("a") as file:
                print(step, loss.item(), file=file)
        if (step + 1) % EVERY == 0:
            weights, moments = get_state_dict(model, optimizer)
            saving = folder / f"saving{step + 1}"
            checkpoint.save({"model": weights, "optimizer": moments}, checkpoint_id=saving)
            distributed.barrier()
            if rank == 0:
                saving.rename(folder / f"step{step + 1}")  # whole, or not there
    if rank == 0:
        (folder / "size").write_text(str(size))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
