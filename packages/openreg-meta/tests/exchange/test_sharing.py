# SPDX-License-Identifier: BSD-3-Clause
"""Tensors sent to another process share one memory, which lives as long as needed. What cannot be sent is refused."""

import gc
import pickle
from multiprocessing import reduction
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as mp
from _platform import HAS_FORK

import torch_openreg  # noqa: F401
from openreg_runtime.openreg import _sharing

DEVICE = "openreg:1"
MIB = 1 << 20
LONGEST = 240  # seconds, a guard against hangs


def serve(connection, state):
    """Runs functions on what it received; the answer is their result or the exception."""
    while True:
        try:
            function, arguments = connection.recv()
            answer = function(state, *arguments)
        except EOFError:
            return
        except Exception as error:
            answer = error
        try:
            connection.send(answer)
        except Exception as error:
            connection.send(error)
        function = arguments = answer = None


class Worker:
    """A process of its own, started as most platforms do."""

    def __init__(self, method="spawn"):
        context = mp.get_context(method)
        self.connection, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, {}), daemon=True)
        self.process.start()
        other.close()

    def __call__(self, function, *arguments):
        self.connection.send((function, arguments))
        if not self.connection.poll(LONGEST):
            self.process.kill()  # a late answer would be taken for that of the next call
            raise AssertionError(f"no answer in {LONGEST} s")
        answer = self.connection.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end(self):
        self.connection.close()
        self.process.join(LONGEST)
        return self.process.exitcode


@pytest.fixture(scope="module")
def worker():
    worker = Worker()
    yield worker
    assert worker.end() == 0


@pytest.fixture(autouse=True)
def nothing_is_left(worker):
    """Every test gives back what it sent."""
    before = allocated()
    yield
    worker(forget)
    assert allocated() == before


def allocated():
    gc.collect()
    torch.openreg.ipc_collect()
    return [torch.openreg.memory_allocated(device) for device in range(2)]


def forget(state):
    state.clear()


def keep(state, name, thing):
    state[name] = thing


def read(state, thing):
    """Plain Python values of a tensor that was received now or before."""
    tensor = state[thing] if isinstance(thing, str) else thing
    return tensor.tolist()


def describe(state, tensor):
    return (
        type(tensor).__name__,
        str(tensor.device),
        str(tensor.dtype),
        tuple(tensor.shape),
        tensor.stride(),
        tensor.storage_offset(),
        tensor.untyped_storage().nbytes(),
        tensor.requires_grad,
        tensor.is_shared(),
    )


def fill(state, thing, value):
    tensor = state[thing] if isinstance(thing, str) else thing
    with torch.no_grad():
        tensor.fill_(value)
    torch.openreg.synchronize(tensor.device)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.bfloat16, torch.complex64])
def test_values_arrive(worker, dtype):
    values = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
    assert worker(read, values.to(DEVICE)) == values.tolist()


def test_a_view_keeps_its_place_and_its_storage(worker):
    base = torch.arange(24.0, device=DEVICE).reshape(4, 6)
    view = base[1:, 2:].t()
    assert worker(describe, view) == (
        "Tensor", DEVICE, "torch.float32", (4, 3), (1, 6), 8, 96, False, True,
    )  # fmt: skip
    assert worker(read, view) == view.tolist()


@pytest.mark.covers("registration.reducers of torch.multiprocessing")
def test_writes_are_seen_on_both_sides(worker):
    tensor = torch.zeros(1000, device=DEVICE)
    worker(keep, "x", tensor[:3])
    worker(fill, "x", 5)
    assert tensor[:4].tolist() == [5, 5, 5, 0]
    tensor.add_(1)
    torch.openreg.synchronize(DEVICE)
    assert worker(read, "x") == [6, 6, 6]


def same_storage(state, first, second):
    return state[first].untyped_storage()._cdata == state[second].untyped_storage()._cdata


def test_two_tensors_on_one_storage_share_it_there(worker):
    tensor = torch.zeros(10, device=DEVICE)
    worker(keep, "whole", tensor)
    worker(keep, "part", tensor[4:6])
    worker(keep, "other", torch.zeros(10, device=DEVICE))
    assert worker(same_storage, "whole", "part")
    assert not worker(same_storage, "whole", "other")


@pytest.mark.parametrize("device", ["openreg:0", "openreg:1"])
def test_the_device_is_kept(worker, device):
    assert worker(describe, torch.ones(2, device=device))[1] == device


def test_parameters_and_gradients_wanted_arrive(worker):
    parameter = torch.nn.Parameter(torch.ones(3, device=DEVICE))
    assert worker(describe, parameter)[0] == "Parameter"
    assert worker(describe, parameter)[-2] is True
    frozen = torch.nn.Parameter(torch.ones(3, dtype=torch.int32, device=DEVICE), requires_grad=False)
    assert worker(describe, frozen)[::7] == ("Parameter", False)
    assert worker(describe, torch.ones(3, device=DEVICE, requires_grad=True))[-2] is True


def train_step(state, model, data):
    loss = model(data).square().mean()
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.1 * parameter.grad
    torch.openreg.synchronize(data.device)
    return loss.item()


def test_a_module_is_trained_by_another_process(worker):
    """Hogwild: the step is made there, the parameters change here."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).to(DEVICE)
    data = torch.randn(16, 4, device=DEVICE)
    losses = [worker(train_step, model, data) for _ in range(3)]
    assert losses[0] > losses[1] > losses[2] > model(data).square().mean().item()


def test_an_empty_tensor_arrives(worker):
    assert worker(describe, torch.empty(0, 3, device=DEVICE))[1:4] == (DEVICE, "torch.float32", (0, 3))


def test_storages_arrive(worker):
    tensor = torch.arange(4, dtype=torch.uint8, device=DEVICE)
    assert worker(read, tensor.untyped_storage()) == [0, 1, 2, 3]
    assert worker(read, tensor._typed_storage()) == [0, 1, 2, 3]


def test_cpu_tensors_are_sent_as_ever(worker):
    tensor = torch.zeros(3)
    worker(keep, "x", tensor)
    worker(read, "x")
    tensor.add_(2)
    assert worker(read, "x") == [2, 2, 2]


def test_sending_waits_for_what_was_launched(worker, gate):
    tensor = torch.zeros(3, device=DEVICE)
    gate.close(torch.openreg.current_stream(1))
    tensor.fill_(4)
    gate.open_soon()
    assert worker(read, tensor) == [4, 4, 4]


@pytest.mark.covers("module.ipc_collect")
def test_memory_is_not_reused_while_a_receiver_has_it(worker):
    tensor = torch.full((MIB,), 7, dtype=torch.uint8, device=DEVICE)
    before = allocated()
    worker(keep, "x", tensor)
    del tensor
    assert allocated() == before
    others = [torch.full((MIB,), 9, dtype=torch.uint8, device=DEVICE) for _ in range(4)]
    torch.openreg.synchronize(DEVICE)
    assert set(worker(read, "x")) == {7}
    del others
    worker(forget)
    assert allocated()[1] == before[1] - MIB


def drop_with_work_queued(state):
    with torch.openreg.device(1), torch.openreg.stream(torch.openreg.Stream()) as _:
        torch.openreg._sleep(50_000_000)  # the memory is in use when the storage goes, however soon that is
        copy = state.pop("x").clone()
    return torch.openreg.current_stream(1).query() and copy.tolist()


def test_memory_comes_back_only_after_the_receivers_work(worker):
    tensor = torch.full((4,), 3.0, device=DEVICE)
    worker(keep, "x", tensor)
    assert worker(drop_with_work_queued) == [3, 3, 3, 3]
    del tensor


def test_sending_frees_what_came_back(worker):
    worker(read, torch.zeros(MIB, dtype=torch.uint8, device=DEVICE))
    worker(forget)
    worker(keep, "x", torch.zeros(4, device=DEVICE))
    gc.collect()
    assert torch.openreg.memory_allocated(1) < MIB


def test_the_cache_can_be_emptied_while_tensors_are_away(worker):
    tensor = torch.full((3 * MIB,), 5, dtype=torch.uint8, device=DEVICE)
    worker(keep, "x", tensor)
    del tensor
    torch.openreg.empty_cache()
    assert worker(read, "x")[:2] == [5, 5]
    worker(forget)
    allocated()
    reserved = torch.openreg.memory_reserved(1)
    torch.openreg.empty_cache()
    assert torch.openreg.memory_reserved(1) <= reserved - 3 * MIB


def send_back(state):
    return state["x"]


def test_a_received_tensor_is_not_sent_on(worker):
    worker(keep, "x", torch.zeros(3, device=DEVICE))
    with pytest.raises(RuntimeError, match=r"clone\(\)"):
        worker(send_back)


def resize(state, size):
    state["x"].untyped_storage().resize_(size)


def test_shared_storages_cannot_be_resized(worker):
    tensor = torch.zeros(3, device=DEVICE)
    worker(keep, "x", tensor)
    with pytest.raises(RuntimeError, match="resiz"):
        worker(resize, 100)
    with pytest.raises(RuntimeError, match="resiz"):
        tensor.untyped_storage().resize_(100)


def test_share_memory_changes_nothing():
    tensor = torch.zeros(3, device=DEVICE)
    address = tensor.data_ptr()
    assert tensor.is_shared()
    assert tensor.share_memory_() is tensor
    assert tensor.untyped_storage().share_memory_().is_shared()
    assert torch.nn.Linear(2, 2).to(DEVICE).share_memory().weight.is_shared()
    assert tensor.data_ptr() == address


def test_results_of_autograd_are_refused():
    result = torch.ones(2, device=DEVICE, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="non-leaf"):
        reduction.ForkingPickler.dumps(result)


def test_a_message_to_the_own_process_is_the_same_storage():
    tensor = torch.zeros(3, device=DEVICE)
    received = pickle.loads(reduction.ForkingPickler.dumps(tensor))
    assert received.untyped_storage()._cdata == tensor.untyped_storage()._cdata


def descriptors(state):
    return len([*Path("/proc/self/fd").iterdir()])


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="reads /proc")
def test_no_descriptor_is_left(worker):
    def round_trip():
        worker(read, torch.zeros(30 * MIB, dtype=torch.uint8, device=DEVICE)[:3])  # a segment of its own
        worker(forget)
        allocated()
        torch.openreg.empty_cache()
        return descriptors({}), worker(descriptors)

    first = round_trip()
    assert [round_trip() for _ in range(5)][-1] == first


def make(state, device):
    state["own"] = torch.full((3,), 8.0, device=device)
    return state["own"]


@pytest.fixture
def other(monkeypatch):
    """A process with one device, which a test may end itself."""
    monkeypatch.setenv("OPENREG_DEVICE_COUNT", "1")
    other = Worker()
    yield other
    other.end()
    _sharing._sent.clear()  # what was refused never comes back


def test_a_process_with_fewer_devices_that_ends(other):
    """A receiver refuses what it has no device for, and gives everything back at its end; what it has sent stays."""
    assert other(read, torch.ones(2, device="openreg:0")) == [1, 1]
    lost = torch.ones(2, device="openreg:1")
    with pytest.raises(RuntimeError, match=r"openreg:1 .*\b1 devices"):
        other(read, lost)
    other(forget)
    allocated()
    _sharing._sent.clear()  # what was refused is never given back
    del lost

    tensor = torch.zeros(MIB, dtype=torch.uint8, device="openreg:0")
    other(keep, "x", tensor)
    received = other(make, "openreg:0")
    before = allocated()
    del tensor
    assert allocated() == before
    assert other.end() == 0
    assert allocated()[0] == before[0] - MIB
    assert received.tolist() == [8, 8, 8]


@pytest.mark.skipif(not HAS_FORK, reason="this system has no fork()")
def test_a_forked_child_says_what_is_wrong(python):
    done = python("""
import torch, torch_openreg
import torch.multiprocessing as mp


def receive(connection):
    try:
        connection.recv()
    except RuntimeError as error:
        connection.send(str(error))

torch.ones(2, device="openreg")
here, there = mp.get_context("fork").Pipe()
child = mp.get_context("fork").Process(target=receive, args=(there,))
child.start()
here.send(torch.ones(2, device="openreg"))
print(here.recv())
child.join()
""")
    assert "Cannot re-initialize OpenReg in forked subprocess" in done.stdout, done.stderr
    assert "spawn" in done.stdout
    assert done.returncode == 0
