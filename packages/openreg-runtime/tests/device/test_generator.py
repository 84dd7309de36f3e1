# SPDX-License-Identifier: BSD-3-Clause
"""Generators have a state of 16 bytes, which can be read, set, copied and pickled, and one default per device."""

import copy
import pickle
import struct
import threading

import pytest
import torch

from openreg_runtime import openreg

pytestmark = pytest.mark.usefixtures("clean_device")


def fields(state):
    """Seed and offset of a state."""
    assert (state.device.type, state.dtype, tuple(state.shape)) == ("cpu", torch.uint8, (16,))
    return struct.unpack("=QQ", bytes(state.tolist()))


@pytest.mark.covers(
    "generator.set_current_seed",
    "generator.set_offset",
    "generator.get_offset",
    "generator.current_seed",
    "generator.get_state",
)
def test_a_state_is_seed_and_offset():
    generator = torch.Generator("openreg:1")
    assert generator.device == torch.device("openreg:1")
    generator.manual_seed(5)
    generator.set_offset(12)
    assert fields(generator.get_state()) == (5, 12)
    assert (generator.initial_seed(), generator.get_offset()) == (5, 12)
    generator.manual_seed(-1)  # PyTorch maps negative seeds to the upper half
    assert fields(generator.get_state()) == (2**64 - 1, 0)


@pytest.mark.covers("accelerator_hooks.getNewGenerator")
def test_a_new_generator_has_pytorchs_default_seed():
    assert fields(torch.Generator("openreg").get_state()) == (torch.Generator().initial_seed(), 0)


@pytest.mark.covers("generator.set_state")
def test_a_state_goes_into_another_generator():
    generator, other = torch.Generator("openreg:0"), torch.Generator("openreg:1")
    generator.manual_seed(2**63 + 3)
    generator.set_offset(2**40)
    other.set_state(generator.get_state())
    assert fields(other.get_state()) == (2**63 + 3, 2**40)


def test_a_state_is_a_copy():
    generator = torch.Generator("openreg").manual_seed(1)
    state = generator.get_state()
    generator.manual_seed(2)
    assert fields(state) == (1, 0)
    state.zero_()
    assert generator.initial_seed() == 2


@pytest.mark.covers("generator.set_state")
@pytest.mark.parametrize(
    ("state", "error", "text"),
    [
        (torch.zeros(15, dtype=torch.uint8), ValueError, "16 bytes"),
        (torch.zeros(0, dtype=torch.uint8), ValueError, "16 bytes"),
        (torch.zeros(32, dtype=torch.uint8)[::2], TypeError, "contiguous"),
        (torch.zeros(16), TypeError, "uint8"),
        (torch.Generator().get_state(), ValueError, "generator on an openreg device"),
    ],
)
def test_another_state_is_refused_and_changes_nothing(state, error, text):
    generator = torch.Generator("openreg").manual_seed(7)
    with pytest.raises(error, match=text):
        generator.set_state(state)
    assert fields(generator.get_state()) == (7, 0)


@pytest.mark.covers("generator.set_offset", "generator.set_state")
@pytest.mark.parametrize("offset", [1, 2, 2**64 - 1])
def test_an_offset_within_a_step_is_refused_and_changes_nothing(offset):
    generator = torch.Generator("openreg").manual_seed(7)
    state = torch.tensor(list(struct.pack("=QQ", 8, offset)), dtype=torch.uint8)
    for change in (lambda: generator.set_offset(offset), lambda: generator.set_state(state)):
        with pytest.raises(ValueError, match=f"multiple of 4.*{offset}"):
            change()
        assert fields(generator.get_state()) == (7, 0)


@pytest.mark.covers("generator.clone_impl")
def test_a_clone_goes_its_own_way():
    generator = torch.Generator("openreg:1").manual_seed(3)
    generator.set_offset(4)
    clone = generator.clone_state()
    assert (clone.device, fields(clone.get_state())) == (generator.device, (3, 4))
    generator.set_offset(12)
    assert clone.get_offset() == 4


@pytest.mark.covers("generator.get_state")
@pytest.mark.parametrize("duplicate", [lambda g: pickle.loads(pickle.dumps(g)), copy.copy, copy.deepcopy])
def test_a_generator_can_be_pickled_and_copied(duplicate):
    generator = torch.Generator("openreg:1").manual_seed(11)
    generator.set_offset(4)
    twin = duplicate(generator)
    assert twin is not generator
    assert twin.device == generator.device
    assert fields(twin.get_state()) == (11, 4)


@pytest.mark.covers("generator.graphsafe_set_state", "generator.graphsafe_get_state")
def test_a_graph_safe_state_stays_connected():
    generator = torch.Generator("openreg").manual_seed(3)
    shared = generator.graphsafe_get_state()
    generator.set_offset(8)
    assert shared.get_offset() == 8
    other = torch.Generator("openreg")
    other.graphsafe_set_state(shared)
    other.set_offset(16)
    assert generator.get_offset() == 16


def test_a_graph_safe_state_of_another_device_type_is_refused():
    with pytest.raises(TypeError, match="openreg"):
        torch.Generator("openreg").graphsafe_set_state(torch.Generator())


@pytest.mark.covers("generator.philox_state")
@pytest.mark.skipif(not hasattr(torch.Generator, "philox_state"), reason="came with PyTorch 2.14")
def test_a_place_in_the_sequence_is_reserved_as_tensors():
    generator = torch.Generator("openreg:1").manual_seed(-1)  # the largest seed, which does not fit into an int64
    generator.set_offset(12)
    reserved = [generator.philox_state(count) for count in (0, 1, 4, 5)]
    for state in reserved:
        assert [(t.device.type, t.dtype, tuple(t.shape)) for t in state] == [("cpu", torch.int64, (1,))] * 3
    assert {seed.item() for seed, _, _ in reserved} == {-1}
    # Four numbers of 32 bits are one step of the counter.
    assert [offset.item() + within.item() for _, offset, within in reserved] == [12, 12, 16, 20]
    assert generator.get_offset() == 28


@pytest.mark.covers("generator.seed")
def test_seeding_at_random_gives_different_seeds():
    generator = torch.Generator("openreg")
    seeds = {generator.seed() for _ in range(4)}
    assert len(seeds) == 4
    assert generator.initial_seed() in seeds


@pytest.mark.covers("module.default_generators", "module._get_generator", "accelerator_hooks.getDefaultGenerator")
def test_each_device_has_its_default_generator():
    assert len(openreg.default_generators) == openreg.device_count() == 2
    first, second = openreg.default_generators
    assert (first.device.index, second.device.index) == (0, 1)
    assert openreg.default_generators[-1].device.index == 1
    assert [g.device.index for g in openreg.default_generators[::-1]] == [1, 0]
    assert openreg._get_generator(torch.device("openreg:1")).device == second.device
    for index in (2, -3, 256):
        with pytest.raises(IndexError, match="out of range"):
            openreg.default_generators[index]
    first.manual_seed(1)
    second.manual_seed(2)
    assert openreg.default_generators[0].initial_seed() == 1


@pytest.mark.covers("module._is_in_bad_fork", "module.manual_seed_all")
@pytest.mark.parametrize("seed_all", [torch.manual_seed, openreg.manual_seed_all])
def test_seeding_all_seeds_every_device(seed_all):
    for generator in openreg.default_generators:
        generator.set_offset(20)
    seed_all(1234)
    assert [fields(state) for state in openreg.get_rng_state_all()] == [(1234, 0)] * 2


def test_torch_seed_seeds_every_device_alike():
    torch.seed()
    assert {g.initial_seed() for g in openreg.default_generators} == {torch.initial_seed()}


@pytest.mark.covers("module.manual_seed", "module.seed", "module.seed_all", "module.initial_seed")
def test_seeding_one_device_leaves_the_other():
    openreg.manual_seed_all(1)
    with openreg.device(1):
        openreg.manual_seed(9)
        assert openreg.initial_seed() == 9
    assert openreg.initial_seed() == 1
    openreg.seed()
    assert openreg.initial_seed() != 1
    assert openreg.default_generators[1].initial_seed() == 9
    openreg.seed_all()
    assert len({g.initial_seed() for g in openreg.default_generators}) == 1


@pytest.mark.covers(
    "module.get_rng_state", "module.set_rng_state", "module.get_rng_state_all", "module.set_rng_state_all"
)
@pytest.mark.parametrize("device", [1, "openreg:1", torch.device("openreg:1")])
def test_the_state_of_a_device_is_read_and_set(device):
    openreg.manual_seed_all(4)
    state = openreg.get_rng_state(device)
    openreg.default_generators[1].set_offset(64)
    openreg.set_rng_state(state, device)
    assert openreg.default_generators[1].get_offset() == 0
    states = openreg.get_rng_state_all()
    openreg.manual_seed_all(5)
    openreg.set_rng_state_all(states)
    assert [g.initial_seed() for g in openreg.default_generators] == [4, 4]
    with pytest.raises(ValueError, match=r"1 states.*2 openreg devices"):
        openreg.set_rng_state_all(states[:1])


@pytest.mark.skipif(not hasattr(torch.accelerator, "random"), reason="torch.accelerator.random came with torch 2.14")
def test_the_random_functions_of_the_accelerator_are_those_of_the_device():
    openreg.default_generators[0].manual_seed(3)
    openreg.default_generators[1].manual_seed(4)
    random = torch.accelerator.random
    assert [random.initial_seed(), random.initial_seed(1), random.initial_seed("openreg:1")] == [3, 4, 4]
    assert fields(random.get_rng_state(1)) == (4, 0)
    assert [fields(state) for state in random.get_rng_state_all()] == [(3, 0), (4, 0)]
    with openreg.device(1):
        assert random.initial_seed() == 4


def test_fork_rng_restores_every_device():
    openreg.manual_seed_all(4)
    with torch.random.fork_rng(devices=range(2), device_type="openreg"):
        torch.manual_seed(99)
        openreg.default_generators[1].set_offset(12)
    assert [fields(state) for state in openreg.get_rng_state_all()] == [(4, 0)] * 2


def test_seeding_does_not_initialize_the_device(succeed):
    succeed("""
        import torch, openreg_runtime
        torch.manual_seed(3)
        assert torch.openreg.initial_seed() == 3
        assert torch.Generator("openreg:1").device.index == 1
        assert not torch.openreg.is_initialized()
    """)


def test_threads_get_one_default_generator(succeed):
    succeed("""
        import threading, torch, openreg_runtime
        found = []
        barrier = threading.Barrier(8)
        def ask():
            barrier.wait()
            found.append(torch.openreg.default_generators[1])
        threads = [threading.Thread(target=ask) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        found[0].manual_seed(77)
        assert [g.initial_seed() for g in found] == [77] * 8
    """)


def test_threads_may_share_a_generator():
    generator = torch.Generator("openreg")

    def work():
        for i in range(300):
            generator.manual_seed(i)
            seed, offset = fields(generator.get_state())
            assert offset == 0
            assert seed < 300

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert generator.initial_seed() == 299
