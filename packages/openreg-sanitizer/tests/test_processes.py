# SPDX-License-Identifier: BSD-3-Clause
"""Programs of one process and of several: names at the end, collectives, shared memory, and workers of loaders."""

import pytest

NAMES = """
def scale(x, side):
    side.wait_stream(torch.openreg.current_stream())
    with torch.openreg.stream(side):
        x.mul_(2)
    return x.sum()

copies = torch.openreg.Stream()
x = torch.ones(1024, device="openreg")
scale(x, copies)
torch.openreg.synchronize()
with torch.openreg.stream(copies):
    x.add_(1)
y = x * 3
"""


def test_the_missing_line_has_the_name_of_the_stream_at_its_place_also_in_the_last_statement(program):
    done = program(NAMES, OPENREG_SANITIZER="1")
    missing = [line.partition("missing: ")[2] for line in done.stderr.splitlines() if "missing: " in line]
    assert missing == [f"torch.openreg.current_stream().wait_stream({name})" for name in ("side", "copies")]


RANKS = """
import os, tempfile, warnings
import torch.distributed as dist
import torch.multiprocessing as processes

def main(rank, file):
    import openreg_distributed
    warnings.simplefilter("ignore", FutureWarning)
    dist.init_process_group("occl", rank=rank, world_size=2, store=dist.FileStore(file, 2))
    x = torch.ones(1024, device="openreg")
    torch.openreg.synchronize()
    work = dist.all_reduce(x, async_op=True)
    {wait}
    y = x + 1
    work.wait()
    torch.openreg.synchronize()
    dist.destroy_process_group()

if __name__ == "__main__":
    context = processes.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=main, args=(rank, os.path.join(folder, "store"))) for rank in range(2)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
        print([rank.exitcode for rank in ranks])
"""


def test_each_rank_finds_what_it_does_before_its_collective_is_done(program):
    """pytorch/pytorch#177905."""
    done = program(RANKS.format(wait=""), fresh=True, OPENREG_SANITIZER="1")
    assert done.stdout == "[66, 66]\n", done.stderr
    assert done.stderr.count("openreg-sanitizer: race:") == 2
    assert done.stderr.count("missing: work.wait()") == 2
    assert done.stderr.count("first: program.py:15  work = dist.all_reduce(x, async_op=True)") == 2
    assert done.stderr.count("second: program.py:17  y = x + 1") == 2


def test_ranks_that_wait_are_silent(program):
    done = program(RANKS.format(wait="work.wait()"), fresh=True, OPENREG_SANITIZER="1")
    assert (done.stdout, done.stderr) == ("[0, 0]\n", "")


SHARED = """
import torch.multiprocessing as processes

def receive(queue, answers):
    x = queue.get()
    side = torch.openreg.Stream()
    x.mul_(2)
    {wait}
    with torch.openreg.stream(side):
        y = x * 2
    torch.openreg.synchronize()
    answers.put(y.sum().item())
    del x, y

if __name__ == "__main__":
    context = processes.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    child = context.Process(target=receive, args=(queue, answers))
    child.start()
    x = torch.zeros(1024, device="openreg")
    x.fill_(3)
    queue.put(x)
    print(answers.get())
    child.join()
    print(child.exitcode)
"""


def test_memory_of_another_process_is_checked(program):
    """For what the receiver does with it, whose first use of the device is to receive it."""
    done = program(SHARED.format(wait=""), fresh=True, OPENREG_SANITIZER="1")
    assert done.stdout.splitlines()[1:] == ["66"], done.stderr  # the race decides what the first line says
    assert done.stderr.count("openreg-sanitizer: race:") == 1
    assert done.stderr.count("missing: side.wait_stream(torch.openreg.default_stream())") == 1
    assert done.stderr.count("first: program.py:10  x.mul_(2)") == 1
    assert done.stderr.count("second: program.py:13  y = x * 2") == 1
    right = program(SHARED.format(wait="side.wait_stream(torch.openreg.current_stream())"), OPENREG_SANITIZER="1")
    assert (right.stdout, right.stderr) == ("12288.0\n0\n", "")


LOADER = """
import torch.utils.data
class Data(torch.utils.data.Dataset):
    def __len__(self): return 8
    def __getitem__(self, i): return torch.full((4,), float(i))
if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1, pin_memory=True,
                                         multiprocessing_context="{method}")
    total = sum(batch.to("openreg", non_blocking=True).sum() for batch in loader)
    assert total.item() == 4 * 28
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_loader_with_workers_is_silent(program, method):
    done = program(LOADER.format(method=method), fresh=True, OPENREG_SANITIZER="1")
    assert (done.returncode, done.stderr) == (0, "")
