# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers that keys determine (torch.func._random) are the CPU's, and need no generator."""

import math
import re
from types import SimpleNamespace

import pytest
import torch
from parity import DEVICE, check, is_busy, move_all
from torch.func import _random

pytestmark = [
    pytest.mark.no_fallback,
    pytest.mark.skipif(
        not torch._C._dispatch_has_kernel_for_dispatch_key("aten::_philox_uniform_", "CPU"),
        reason="torch 2.13 has the operators for CUDA alone, so that there is nothing to compare with",
    ),
]
HAS_RANDINT = hasattr(torch.ops.aten, "_philox_randint_")
SINCE_15 = pytest.mark.skipif(not HAS_RANDINT, reason="torch 2.15 added integers")

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64)
# Each fills a tensor of one of these dtypes by a key.
DRAWS = {
    "uniform": (FLOATS, lambda out, key: _random.uniform_(key, out, low=-1, high=3)),
    "normal": (FLOATS, lambda out, key: _random.normal_(key, out, mean=2, std=3)),
}
if HAS_RANDINT:
    DRAWS["integers"] = (INTEGERS, lambda out, key: _random.randint_(key, out, low=3, high=100))
    DRAWS["bits"] = (INTEGERS, lambda out, key: _random.bits_(key, out))
# The operators with other forms, which PyTorch makes from those that fill a tensor.
PACKETS = {
    "uniform": "_philox_uniform",
    "normal": "_philox_normal",
    "integers": "_philox_randint",
    "bits": "_philox_randint",
}
CASES = [(name, dtype) for name, (dtypes, _) in DRAWS.items() for dtype in dtypes]


def keys(*batch):
    """Keys in a tensor of this shape, with one more dimension for the seed and the offset of each."""
    return _random.split(_random.key(7), math.prod(batch)).view(*batch, 2)


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_one_key_gives_the_cpus_numbers(name, dtype):
    _, draw = DRAWS[name]
    for shape in ((), (1,), (7,), (3, 5), (0, 2)):
        check(draw, torch.zeros(shape, dtype=dtype), _random.key(2**64 - 3))


@pytest.mark.parametrize("name", DRAWS)
def test_a_batch_of_keys_gives_the_cpus_numbers(name):
    dtypes, draw = DRAWS[name]
    for batch in ((3, 4, 5), (3, 4, 1), (3, 1, 1), (1, 4, 1), (1, 1, 5), (1, 1, 1)):
        check(draw, torch.zeros(3, 4, 5, dtype=dtypes[-1]), keys(*batch))


@pytest.mark.parametrize("name", DRAWS)
def test_strides_do_not_change_the_numbers(name):
    dtypes, draw = DRAWS[name]
    out, key = torch.zeros(10, 12, dtype=dtypes[2]), keys(4, 5, 2)[:, 0].flip(-1)
    for view in (out[:4, :5], out[:5, :4].t(), out[:8:2, 1:11:2]):
        check(draw, view, key[0, 1])
        check(draw, view, keys(5, 4).transpose(0, 1))


@pytest.mark.parametrize("batch", [(), (1,), (2, 3), (0, 2)], ids=str)
def test_keys_made_of_keys(batch):
    key = keys(6)[: math.prod(batch)].view(*batch, 2)
    expanded = key.expand(2, *key.shape)
    for layout in (key, expanded, expanded.transpose(0, -2)):
        check(_random.split, layout, 3)
        for data in (0, 5, -1, 2**64 - 1):
            number = torch.tensor(data % 2**64, dtype=torch.uint64)
            check(_random.fold_in, layout, data)
            check(_random.fold_in, layout, number)
            check(_random.fold_in, layout, number.view(1, 1))


@pytest.mark.parametrize("name", DRAWS)
def test_functional_and_out_forms(name):
    dtypes, _ = DRAWS[name]
    packet = getattr(torch.ops.aten, PACKETS[name])
    like, key = torch.zeros(3, 4, dtype=dtypes[2]), _random.key(5)
    check(packet, like, key)
    check(lambda t, k: packet.out(t, k, out=torch.empty_like(t)), like, key)


def test_the_generator_is_left_alone():
    state = torch.openreg.get_rng_state()
    for dtypes, draw in DRAWS.values():
        draw(torch.empty(100, dtype=dtypes[-1], device=DEVICE), _random.key(1, device=DEVICE))
    assert torch.openreg.get_rng_state().equal(state)


def test_the_host_does_not_wait(gate):
    key, number = _random.key(1, device=DEVICE), torch.tensor(3, dtype=torch.uint64, device=DEVICE)
    gate.close()
    for dtypes, draw in DRAWS.values():
        draw(torch.empty(100, dtype=dtypes[-1], device=DEVICE), _random.fold_in(_random.split(key)[1], number))
    assert is_busy()


def test_a_replay_draws_with_the_keys_that_are_there_then():
    key, number = _random.key(1, device=DEVICE), torch.tensor(0, dtype=torch.uint64, device=DEVICE)
    graph = torch.openreg.Graph()
    with torch.openreg.graph(graph):
        drawn = _random.uniform(_random.fold_in(key, number), 10)
    for seed, data in ((1, 0), (1, 4), (6, 4)):
        key.copy_(_random.key(seed))
        number.fill_(data)
        graph.replay()
        assert drawn.cpu().equal(_random.uniform(_random.fold_in(_random.key(seed), data), 10))


@pytest.mark.parametrize(
    "operation",
    [
        lambda t: _random.split(t.key, 0),
        lambda t: _random.split(t.key.long(), 2),
        lambda t: _random.split(t.key[0], 2),
        lambda t: _random.fold_in(t.key.long(), 1),
        lambda t: _random.fold_in(t.key[:1], 1),
        lambda t: _random.fold_in(t.key[:1], t.key[1]),
        lambda t: _random.fold_in(t.key, t.key),
        lambda t: _random.fold_in(t.key, t.key[0].long()),
        lambda t: _random.uniform_(t.key, t.floats.int()),
        lambda t: _random.uniform_(t.key, t.floats.cfloat()),
        lambda t: _random.uniform_(t.key, t.floats[:1].expand(4)),
        lambda t: _random.normal_(t.key.long(), t.floats),
        lambda t: _random.normal_(t.key[:1], t.floats),
        lambda t: _random.normal_(t.keys, t.floats),
        lambda t: _random.normal_(t.keys[None], t.floats),
        pytest.param(lambda t: _random.randint_(t.key, t.floats), marks=SINCE_15),
        pytest.param(lambda t: _random.randint_(t.key, t.floats > 0), marks=SINCE_15),
        pytest.param(lambda t: _random.randint_(t.key, t.floats.int(), high=2**28 + 1), marks=SINCE_15),
        pytest.param(lambda t: torch.ops.aten._philox_randint_(t.floats.int(), t.key, 5, 5), marks=SINCE_15),
    ],
)
def test_mistakes_fail_on_the_calling_line(operation):
    """As on the CPU, in the same words. A kernel's own are followed by the names of operator and device."""
    tensors = {"key": _random.key(1), "keys": keys(3), "floats": torch.zeros(4)}
    with pytest.raises((RuntimeError, NotImplementedError), match=r".") as theirs:
        operation(SimpleNamespace(**tensors))
    said = re.escape(str(theirs.value).splitlines()[0])
    with pytest.raises(theirs.type, match=f"^{said}($|\n| \\(aten::_philox)"):
        operation(SimpleNamespace(**move_all(tensors, DEVICE)))
    torch.openreg.synchronize()


@pytest.mark.parametrize("other", ["cpu", "openreg:1"])
def test_operands_on_several_devices_are_refused(other):
    key, number = _random.key(1, device=DEVICE), torch.tensor(3, dtype=torch.uint64, device=other)
    operations = [
        lambda: _random.fold_in(key, number),
        lambda: _random.uniform_(key, torch.empty(3, device=other)),
        lambda: _random.normal_(key.to(other), torch.empty(3, device=DEVICE)),
    ]
    for operation in operations:
        with pytest.raises(RuntimeError, match="same device"):
            operation()
