# SPDX-License-Identifier: BSD-3-Clause
"""The test classes that torch ships for devices run on this process group, and detect bugs in it."""

from __future__ import annotations

import warnings

import planted
import properties
import pytest
import torch
from _platform import START_METHOD, process_context
from torch import distributed

import openreg_distributed  # noqa: F401

with warnings.catch_warnings():  # of what PyTorch itself uses
    warnings.simplefilter("ignore")
    from torch.testing._internal import common_distributed
    from torch.testing._internal.distributed._tensor import common_dtensor

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch"),
]

SIZE = 3
LAYOUT = properties.Layout((0, 1, 2, 3), (1, 1, 1, 1), 0)
# Mistakes after which the sizes of tensors do not fit, so that the group refuses the call, with this text.
REFUSED = {("uneven_all_gather", "wrong rank"): "give them the same size"}


class Collectives(common_distributed.MultiProcContinuousTest):
    """Processes that stay for all tests of a class."""

    world_size = SIZE

    @classmethod
    def backend_str(cls):
        return "occl"

    @classmethod
    def device_type(cls):
        return "openreg"

    @classmethod
    def _spawn_processes(cls, world_size):
        # The class leaves a method that is set already, and a process that has used the device is not to be forked.
        process_context()
        torch.multiprocessing.set_start_method(START_METHOD, force=True)
        super()._spawn_processes(world_size)

    @classmethod
    def _init_pg(cls, rank, world_size, rdvz_file):
        torch.openreg.set_device(rank % torch.openreg.device_count())
        super()._init_pg(rank, world_size, rdvz_file)

    def compare(self, kind):
        """One call of a kind, whose results have to be NumPy's."""
        operation = {"coalesced": "SUM"}.get(kind, "AVG") if kind in properties.REDUCTIONS else ""
        call = properties.Call(kind, "float32", (2, 3), LAYOUT, operation, 1, False, 1)
        works, check = properties.Rank(self.rank, self.world_size).begin(call)
        for work in works:
            work.wait()
        check()

    def compare_barrier(self):
        """The barrier of the first rank is not over before the others have come, for which it lets them."""
        key = f"barrier {self.id()} {self.count_of_barriers()}"
        store = distributed.distributed_c10d._get_default_store()
        if self.rank:
            store.wait([key])
            distributed.barrier()
            return
        work = distributed.barrier(async_op=True)
        was_over = work.is_completed()
        store.set(key, "")
        work.wait()
        assert not was_over
        assert work.is_completed()

    barriers = 0

    def count_of_barriers(self):
        type(self).barriers += 1
        return type(self).barriers

    def finds(self, check, refusal=None):
        """Whether the check fails on any rank, or its call is refused with this text. Another error is raised."""
        found = False
        key = f"{self.id()} {self.count_of_barriers()}"
        store = distributed.distributed_c10d._get_default_store()
        try:
            check()
        except AssertionError:
            found = True
        except ValueError as error:
            if refusal is None or refusal not in str(error):
                raise
            found = True
        finally:
            store.set(f"{key} {self.rank}", str(found))
        return any(store.get(f"{key} {rank}") == b"True" for rank in range(self.world_size))

    def check_planted(self, kind, mistake):
        with planted.plant(kind, mistake):
            found = self.finds(lambda: self.compare(kind), REFUSED.get((kind, mistake)))
        torch.openreg.synchronize()
        assert found, f"{mistake} in {kind} was not noticed"


class ContinuousTest(Collectives):
    """Each kind of call, and each kind with each mistake, in the same processes."""

    def test_barrier(self):
        self.compare_barrier()

    def test_barrier_left_out(self):
        real = distributed.barrier
        distributed.barrier = lambda **_: planted.Unordered()
        try:
            assert self.finds(self.compare_barrier)
        finally:
            distributed.barrier = real


def add_tests():
    for kind in planted.FUNCTIONS:
        setattr(ContinuousTest, f"test_{kind}", lambda self, kind=kind: self.compare(kind))
        for mistake in planted.mistakes_of(kind):
            name = f"test_{kind}_{mistake.replace(' ', '_')}"
            setattr(ContinuousTest, name, lambda self, kind=kind, mistake=mistake: self.check_planted(kind, mistake))


add_tests()


class ShardedTest(common_dtensor.DTensorTestBase):
    """PyTorch's class for DTensor, which starts processes for each test."""

    world_size = 2
    device_type = "openreg"
    backend = "cpu:gloo,openreg:occl"

    def _spawn_processes(self):
        self._start_processes(process_context().Process)

    @common_dtensor.with_comms
    def test_layers_that_are_divided(self):
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        mesh = self.build_device_mesh()
        for placement in (Shard(0), Shard(1), Replicate()):
            whole = torch.arange(20.0, device=self.device_type).view(4, 5)
            divided = distribute_tensor(whole, mesh, [placement])
            for other in (Shard(0), Shard(1), Replicate()):
                torch.testing.assert_close(divided.redistribute(mesh, [other]).full_tensor(), whole)
            torch.testing.assert_close((divided @ divided.t()).full_tensor(), whole @ whole.t())
            torch.testing.assert_close(divided.sum(0).full_tensor(), whole.sum(0))
        torch.manual_seed(0)
        alone = common_dtensor.MLPModule(self.device_type)
        torch.manual_seed(0)
        module = parallelize_module(
            common_dtensor.MLPModule(self.device_type), mesh, {"net1": ColwiseParallel(), "net2": RowwiseParallel()}
        )
        x = torch.rand(4, 10, device=self.device_type)
        distributed.broadcast(x, 0)
        torch.testing.assert_close(module(x), alone(x), rtol=1e-5, atol=1e-6)


del Collectives  # pytest is to see the classes with tests
