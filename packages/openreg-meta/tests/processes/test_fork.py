# SPDX-License-Identifier: BSD-3-Clause
"""A forked child that changes its tensors does not change its parent's data."""

import pytest
from _platform import HAS_FORK

pytestmark = pytest.mark.skipif(not HAS_FORK, reason="this system has no fork()")

# The child inherits tensors, free blocks, pinned memory, and work that is under way.
CHILDREN = """
import gc, os, sys, torch

def drop(holder):
    holder.clear()
    gc.collect()

def empty(holder):
    torch.openreg.empty_cache()
    torch.openreg.empty_host_cache()

def drop_and_empty(holder):
    drop(holder)
    empty(holder)

def keep(holder):
    pass

# sys.exit() drops and empties as well, after what the child has done by itself; os._exit() does neither.
ESSENTIAL = [(drop, os._exit), (empty, os._exit), (drop_and_empty, os._exit), (keep, sys.exit)]

for use in (drop, empty, drop_and_empty, keep):
    for leave in (sys.exit, os._exit):
        if not ALL and (use, leave) not in ESSENTIAL:
            continue
        sizes = (1, 1000, 100_000, 3_000_000)
        kept = [torch.full((size,), float(size), device=f"openreg:{size % 2}") for size in sizes]
        pinned = torch.full((5000,), 5.0).pin_memory()
        torch.ones(3_000_000, device="openreg")  # becomes a free block
        stream = torch.Stream("openreg")
        with stream:
            torch.openreg._sleep(20_000_000)
            late = torch.full((1000,), 7.0, device="openreg")
        holder = [*kept, pinned, late, stream]
        child = os.fork()
        if child == 0:
            del kept, pinned, late, stream
            use(holder)
            leave(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stream.synchronize()
        fresh = [torch.empty(size, device=tensor.device) for size, tensor in zip(sizes, kept)]
        for size, tensor in zip(sizes, kept):
            assert tensor.cpu().eq(size).all(), (use, leave, size)
        assert late.eq(7).all() and pinned.eq(5).all(), (use, leave)
        for tensor in fresh:
            assert tensor.view(torch.uint8).eq(0xFF).all(), (use, leave)
        del fresh, tensor
"""


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.endurance)])
def test_with_poison_a_child_cannot_change_its_parents_data(python, every):
    result = python(f"ALL = {every}\n{CHILDREN}", finalize=True, OPENREG_POISON="1")
    assert (result.returncode, result.stderr) == (0, "")
