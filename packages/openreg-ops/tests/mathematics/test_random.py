# SPDX-License-Identifier: BSD-3-Clause
"""Random operators follow their distributions, and a seed reproduces their numbers for any number of threads."""

import math

import pytest
import torch
from parity import DEVICE, is_busy

pytestmark = pytest.mark.no_fallback

COUNT = 200_000
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
DRAWS = {
    "uniform": lambda t, **kw: t.uniform_(**kw),
    "normal": lambda t, **kw: t.normal_(**kw),
    "bernoulli": lambda t, **kw: t.bernoulli_(0.3, **kw),
    "random": lambda t, **kw: t.random_(**kw),
    "random to": lambda t, **kw: t.random_(100, **kw),
    "random from to": lambda t, **kw: t.random_(-7, 100, **kw),
    "exponential": lambda t, **kw: t.exponential_(**kw),
    "geometric": lambda t, **kw: t.geometric_(0.05, **kw),
    "cauchy": lambda t, **kw: t.cauchy_(**kw),
    "log normal": lambda t, **kw: t.log_normal_(**kw),
}


def empty(*shape, dtype=torch.float32, device=DEVICE):
    return torch.empty(shape, dtype=dtype, device=device)


@pytest.mark.covers("generator.set_current_seed")
@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_repeats_the_numbers(name):
    draw = DRAWS[name]
    torch.manual_seed(5)
    first, second = draw(empty(1000)).cpu(), draw(empty(1000)).cpu()
    torch.manual_seed(5)
    assert draw(empty(1000)).cpu().equal(first)
    assert not first.equal(second)
    torch.manual_seed(6)
    assert not draw(empty(1000)).cpu().equal(first)


@pytest.mark.covers("generator.set_state")
@pytest.mark.parametrize("name", DRAWS)
def test_a_state_repeats_the_numbers(name):
    draw = DRAWS[name]
    draw(empty(10))
    state = torch.openreg.get_rng_state()
    first = draw(empty(100)).cpu()
    torch.openreg.set_rng_state(state)
    assert draw(empty(100)).cpu().equal(first)


@pytest.mark.parametrize("name", DRAWS)
def test_devices_draw_independently(name):
    draw = DRAWS[name]
    torch.manual_seed(1)
    expected = draw(empty(50, device="openreg:1")).cpu()
    torch.manual_seed(1)
    draw(empty(50, device="openreg:0"))  # leaves the generator of the other device alone
    assert draw(empty(50, device="openreg:1")).cpu().equal(expected)
    assert torch.openreg.get_rng_state(0).equal(torch.openreg.get_rng_state(1))


@pytest.mark.parametrize("name", DRAWS)
def test_a_generator_of_ones_own(name):
    draw = DRAWS[name]
    generator = torch.Generator(DEVICE).manual_seed(9)
    state = torch.openreg.get_rng_state()
    first = draw(empty(100), generator=generator).cpu()
    assert torch.openreg.get_rng_state().equal(state)
    assert generator.get_offset() > 0
    assert not draw(empty(100), generator=generator).cpu().equal(first)
    generator.manual_seed(9)
    assert draw(empty(100), generator=generator).cpu().equal(first)


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("device", ["cpu", "openreg:1"])
def test_a_generator_of_another_device_is_refused(name, device):
    with pytest.raises(RuntimeError, match=r"generator"):
        DRAWS[name](empty(4), generator=torch.Generator(device))


@pytest.mark.parametrize("name", DRAWS)
def test_strides_do_not_change_the_numbers(name):
    draw = DRAWS[name]
    torch.manual_seed(2)
    expected = draw(empty(4, 6)).cpu()
    for layout in (empty(6, 4).t(), empty(4, 12)[:, ::2], empty(8, 6)[4:]):
        torch.manual_seed(2)
        assert draw(layout).cpu().equal(expected)


def test_the_number_of_threads_and_what_runs_meanwhile_do_not_change_the_numbers(run_python):
    code = """
import torch, openreg_ops
torch.manual_seed(3)
x = torch.randn(100_000, device="openreg")
y = torch.rand(100_000, dtype=torch.float64, device="openreg")
z = torch.randint(1000, (100_000,), device="openreg")
d = torch.nn.functional.dropout(torch.ones(100_000, device="openreg"), 0.4)
for drawn in (x, y, z, d):  # sums of floating-point numbers would depend on the number of threads
    words = drawn.cpu().view(torch.int32).long()
    print((words * torch.arange(len(words))).sum().item())
"""
    outputs = {run_python(code, OPENREG_NUM_THREADS=count).stdout for count in ("1", "2", "3")}
    assert len(outputs) == 1
    assert len(outputs.pop().split()) == 4


def test_the_schedule_does_not_change_the_numbers(run_python):
    code = """
import torch, openreg_ops
torch.manual_seed(3)
streams = [torch.openreg.Stream(device) for device in (0, 1, 0, 1)]
drawn = []
for number in range(8):
    with torch.openreg.stream(streams[number % 4]):
        torch.openreg._sleep(1000 * (8 - number))  # those that draw first run last
        drawn.append(torch.rand(1000, device="openreg"))
for device in range(2):
    torch.openreg.synchronize(device)
print(*(x.double().sum().item() for x in drawn))
"""
    runs = [run_python(code, OPENREG_SCHEDULE_SEED=seed) for seed in ("1", "2", "3")]
    runs.append(run_python(code))
    outputs = {run.stdout for run in runs}
    assert len(outputs) == 1, [run.stderr for run in runs]
    assert len(set(outputs.pop().split())) == 4  # the devices draw alike, in turn


@pytest.mark.parametrize("stream", ["default", "own"])
def test_the_numbers_are_those_of_the_launch_whenever_the_kernel_runs(stream, gate):
    chosen = torch.openreg.Stream() if stream == "own" else torch.openreg.current_stream()
    torch.manual_seed(8)
    expected = torch.rand(100, device=DEVICE).cpu()
    torch.manual_seed(8)
    with torch.openreg.stream(chosen):
        gate.close()
        late = torch.rand(100, device=DEVICE)
        torch.manual_seed(9)  # before the kernel ran
        gate.open()
        assert late.cpu().equal(expected)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_uniform(dtype):
    x = empty(COUNT, dtype=dtype).uniform_(-1, 3).cpu().double()
    assert -1 <= x.min().item() < -0.99
    assert 2.95 < x.max().item() < 3
    assert x.mean().item() == pytest.approx(1, abs=0.02)
    assert x.var().item() == pytest.approx(16 / 12, rel=0.02)
    unit = torch.rand(COUNT, dtype=dtype, device=DEVICE).cpu()
    assert unit.min().item() >= 0
    assert unit.max().item() < 1
    quarters = (unit.double() * 4).long().bincount(minlength=4) / COUNT
    torch.testing.assert_close(quarters, torch.full((4,), 0.25), atol=0.01, rtol=0)


def test_uniform_never_gives_its_upper_end():
    x = empty(1 << 20, dtype=torch.bfloat16).uniform_(1, 1.0625)  # few numbers of this dtype in between
    assert x.cpu().max().item() < 1.0625
    assert empty(4).uniform_(2, 2).cpu().tolist() == [2] * 4


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_normal(dtype):
    x = empty(COUNT, dtype=dtype).normal_(2, 3).cpu().double()
    assert x.isfinite().all()
    z = (x - 2) / 3
    moments = [z.pow(k).mean().item() for k in (1, 2, 3, 4)]
    assert moments == pytest.approx([0, 1, 0, 3], abs=0.06)
    inside = (z.abs() < 1).double().mean().item()
    assert inside == pytest.approx(math.erf(1 / math.sqrt(2)), abs=0.005)
    assert z.abs().max().item() > 3.5
    assert abs((z[:-1] * z[1:]).mean().item()) < 0.01  # neighbors are independent


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.uint8, torch.float16], ids=str)
def test_bernoulli(dtype):
    x = empty(COUNT, dtype=dtype).bernoulli_(0.3).cpu().double()
    assert set(x.unique().tolist()) == {0, 1}
    assert x.mean().item() == pytest.approx(0.3, abs=0.005)
    assert empty(100, dtype=dtype).bernoulli_(0).cpu().sum().item() == 0
    assert empty(100, dtype=dtype).bernoulli_(1).cpu().long().sum().item() == 100


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_exponential(dtype):
    x = empty(COUNT, dtype=dtype).exponential_(2).cpu().double()
    assert x.min().item() > 0
    assert x.isfinite().all()
    assert x.mean().item() == pytest.approx(0.5, rel=0.02)
    assert x.var().item() == pytest.approx(0.25, rel=0.05)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64, torch.uint8], ids=str)
def test_geometric(dtype):
    x = empty(COUNT, dtype=dtype).geometric_(0.3).cpu().double()
    assert x.min().item() == 1
    assert x.frac().abs().max().item() == 0
    assert x.mean().item() == pytest.approx(1 / 0.3, rel=0.02)
    assert (x == 1).double().mean().item() == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_cauchy(dtype):
    x = empty(COUNT, dtype=dtype).cauchy_(1, 2).cpu().double()
    quartiles = x.quantile(torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64))
    assert quartiles.tolist() == pytest.approx([-1, 1, 3], abs=0.06)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_log_normal(dtype):
    x = empty(COUNT, dtype=dtype).log_normal_(0.5, 0.25).cpu().double().log()
    assert x.mean().item() == pytest.approx(0.5, abs=0.005)
    assert x.std().item() == pytest.approx(0.25, rel=0.02)


INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool, torch.uint16, torch.uint32]


@pytest.mark.parametrize("dtype", [*INTEGERS, torch.uint64, *FLOATS], ids=str)
def test_random_over_the_whole_dtype(dtype):
    x = empty(COUNT, dtype=dtype).random_().cpu()
    if dtype == torch.uint64:
        x = x.view(torch.int64).bitwise_right_shift(1).bitwise_and(2**63 - 1)
        largest = 2**63 - 1
    else:
        largest = torch.iinfo(dtype).max if dtype in INTEGERS[:5] + INTEGERS[6:] else 1
        largest = largest if not dtype.is_floating_point else 2 / torch.finfo(dtype).eps
    x = x.double()
    assert x.min().item() >= 0
    assert x.max().item() <= largest
    assert x.mean().item() == pytest.approx(largest / 2, rel=0.02)


@pytest.mark.filterwarnings("ignore:to - 1 is out of bounds")
def test_random_ranges():
    x = torch.randint(-3, 4, (COUNT,), device=DEVICE).cpu()
    counts = (x + 3).bincount(minlength=7) / COUNT
    torch.testing.assert_close(counts, torch.full((7,), 1 / 7), atol=0.01, rtol=0)
    assert set(torch.randint(5, 6, (100,), device=DEVICE).cpu().tolist()) == {5}
    wide = empty(COUNT, dtype=torch.int64).random_(-(2**63), None).cpu().double()
    assert wide.min().item() < -(2**62)
    assert wide.max().item() > 2**62
    assert wide.mean().item() == pytest.approx(0, abs=2**63 * 0.01)
    half = empty(COUNT, dtype=torch.float16).random_(0, 65504)
    assert half.cpu().max().item() < 65504


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        (lambda: empty(2, dtype=torch.int8).random_(0, 200), "out of bounds"),
        (lambda: empty(2, dtype=torch.uint8).random_(-5, 10), "out of bounds"),
        (lambda: empty(2).random_(5, 5), "'from' to be less than 'to'"),
        (lambda: empty(2).uniform_(2, 1), "from"),
        (lambda: empty(2).uniform_(-3e38, 3e38), "exceed the limit"),
        (lambda: empty(2).normal_(0, -1), "std >= 0"),
        (lambda: empty(2).bernoulli_(1.5), "p to be in"),
        (lambda: empty(2).exponential_(0), "lambda > 0"),
        (lambda: empty(2).geometric_(1), "p to be in"),
        (lambda: empty(2).cauchy_(0, 0), "sigma > 0"),
        (lambda: empty(2, dtype=torch.int64).cauchy_(), "must be a floating point"),
        (lambda: empty(2).log_normal_(0, 0), "std > 0"),
        (lambda: empty(2, dtype=torch.int64).normal_(), "not implemented for 'Long'"),
        (lambda: empty(2, dtype=torch.int64).uniform_(), "not implemented for 'Long'"),
        (lambda: empty(2, dtype=torch.complex64).exponential_(), "has to be a floating one"),
        (lambda: empty(2).bernoulli_(empty(3).fill_(0.5)), "expanded size"),
        (lambda: (x := empty(3).fill_(0.5))[1:].bernoulli_(x[:-1]), "memory location"),
        (lambda: empty(2, dtype=torch.complex64).bernoulli_(empty(2).fill_(0.5)), "not implemented for 'ComplexFloat'"),
        (lambda: torch.ops.aten.rrelu_with_noise(empty(2), empty(2).double(), 0.1, 0.3, True), "noise has the shape"),
        (
            lambda: torch.ops.aten.rrelu_with_noise.out(empty(2), empty(2), 0.1, 0.3, True, out=empty(2).double()),
            "out has the shape",
        ),
    ],
)
def test_mistakes_are_found_on_the_calling_line_and_draw_nothing(operation, text):
    state = torch.openreg.get_rng_state()
    with pytest.raises((RuntimeError, NotImplementedError), match=text):
        operation()
    assert torch.openreg.get_rng_state().equal(state)
    torch.openreg.synchronize()


def test_complex_numbers():
    z = torch.randn(COUNT, dtype=torch.complex64, device=DEVICE).cpu()
    assert z.real.var().item() == pytest.approx(0.5, rel=0.02)
    assert z.imag.var().item() == pytest.approx(0.5, rel=0.02)
    assert abs((z.real * z.imag).mean().item()) < 0.01
    u = torch.rand(1000, dtype=torch.complex128, device=DEVICE).cpu()
    assert u.real.min().item() >= 0
    assert 0.5 < u.imag.max().item() < 1


def test_nothing_to_draw():
    state = torch.openreg.get_rng_state()
    for draw in DRAWS.values():
        assert draw(empty(0, 3)).shape == (0, 3)
    assert torch.openreg.get_rng_state().equal(state)


def test_sizes_that_are_no_multiple_of_a_step():
    for count in (1, 2, 3, 5, 7):
        for dtype in (torch.float32, torch.float64):
            torch.manual_seed(4)
            whole = torch.randn(8, dtype=dtype, device=DEVICE).cpu()
            torch.manual_seed(4)
            assert torch.randn(count, dtype=dtype, device=DEVICE).cpu().equal(whole[:count])


def test_the_host_does_not_wait(gate):
    x = empty(1000)
    gate.close()
    x.normal_()
    x.uniform_()
    assert is_busy()


def test_initializers_of_modules():
    with torch.device(DEVICE):
        linear = torch.nn.Linear(400, 300)
        torch.nn.init.xavier_normal_(linear.weight)
    assert linear.weight.device.type == DEVICE
    assert linear.weight.detach().cpu().std().item() == pytest.approx(math.sqrt(2 / 700), rel=0.02)
    assert linear.bias.detach().cpu().abs().max().item() <= 1 / math.sqrt(400)
