# SPDX-License-Identifier: BSD-3-Clause
"""Random operators with tensor parameters follow their distributions, and a seed reproduces their numbers."""

import pytest
import torch
from parity import DEVICE, check
from torch.nn import functional

pytestmark = pytest.mark.no_fallback

COUNT = 100_000


def full(value, *shape, **options):
    return torch.full(shape or (COUNT,), float(value), device=DEVICE, **options)


DRAWS = {
    "normal tensor float": lambda g: torch.normal(full(1, 300), 2.0, generator=g),
    "normal float tensor": lambda g: torch.normal(1.0, full(2, 300), generator=g),
    "normal tensors": lambda g: torch.normal(full(1, 300), full(2, 300), generator=g),
    "bernoulli": lambda g: torch.bernoulli(full(0.5, 300), generator=g),
    "bernoulli_": lambda g: full(0, 300).bernoulli_(full(0.5, 300), generator=g),
    "poisson": lambda g: torch.poisson(full(9, 300), generator=g),
    "binomial": lambda g: torch.binomial(full(50, 300), full(0.4, 300), generator=g),
    "gamma": lambda g: torch._standard_gamma(full(2, 300), generator=g),
    "dirichlet": lambda g: torch._sample_dirichlet(full(2, 60, 5), generator=g),
    "randperm": lambda g: torch.randperm(300, device=DEVICE, generator=g),
    "multinomial": lambda g: torch.multinomial(full(1, 50, 9), 5, generator=g),
    "multinomial with replacement": lambda g: torch.multinomial(full(1, 50, 9), 30, True, generator=g),
    "rrelu": lambda g: torch.ops.aten.rrelu_with_noise(full(-1, 300), full(0, 300), 0.1, 0.9, True, g),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_repeats_the_numbers(name):
    generator = torch.Generator(DEVICE).manual_seed(5)
    first, second = DRAWS[name](generator).cpu(), DRAWS[name](generator).cpu()
    assert not first.equal(second)
    assert DRAWS[name](generator.manual_seed(5)).cpu().equal(first)


@pytest.mark.parametrize("name", DRAWS)
def test_the_default_generator_is_the_device_s(name):
    torch.manual_seed(7)
    first = DRAWS[name](None).cpu()
    assert DRAWS[name](torch.Generator(DEVICE).manual_seed(7)).cpu().equal(first)


@pytest.mark.parametrize("name", DRAWS)
def test_a_generator_of_the_cpu_is_refused(name):
    with pytest.raises(RuntimeError, match=r"generator"):
        DRAWS[name](torch.Generator())


def test_the_number_of_threads_does_not_change_the_numbers(run_python):
    code = """
import torch, openreg_ops
def full(value, *shape): return torch.full(shape, float(value), device="openreg")
torch.manual_seed(3)
draws = [torch.normal(full(1, 20_000), full(2, 20_000)), full(0, 20_000).bernoulli_(full(0.5, 20_000)),
         torch.poisson(full(9, 20_000)), torch.poisson(full(0.1, 20_000)), torch._standard_gamma(full(0.3, 20_000)),
         torch.binomial(full(50, 20_000), full(0.4, 20_000)), torch._sample_dirichlet(full(2, 4_000, 5)),
         torch.randperm(20_000, device="openreg")[:50], torch.multinomial(full(1, 300, 90), 30, True)]
print(*(x.double().cpu().square().cumsum(0).sum().item() for x in draws))
"""
    outputs = {run_python(code, OPENREG_NUM_THREADS=count).stdout for count in ("1", "2", "3")}
    assert len(outputs) == 1
    assert len(outputs.pop().split()) == 9


def test_normal_takes_mean_and_deviation_per_element():
    mean = torch.tensor([[-10.0], [0.0], [10.0]], device=DEVICE).expand(3, COUNT)
    deviation = torch.tensor([[0.1], [1.0], [3.0]], device=DEVICE).expand(3, COUNT)
    for drawn, means, deviations in [
        (torch.normal(mean, deviation), [-10, 0, 10], [0.1, 1, 3]),
        (torch.normal(mean, 2.0), [-10, 0, 10], [2, 2, 2]),
        (torch.normal(4.0, deviation), [4, 4, 4], [0.1, 1, 3]),
    ]:
        assert drawn.cpu().mean(1).tolist() == pytest.approx(means, abs=0.05)
        assert drawn.cpu().std(1).tolist() == pytest.approx(deviations, rel=0.02)
    out = torch.empty(3, 5, device=DEVICE)
    assert torch.normal(mean[:, :5], 0.0, out=out) is out
    assert out.cpu().equal(mean[:, :5].cpu())
    with pytest.raises(RuntimeError, match=r"std >= 0"):
        torch.normal(mean, -deviation)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_bernoulli_takes_a_probability_per_element(dtype):
    p = torch.tensor([[0.0], [0.25], [1.0]], dtype=dtype, device=DEVICE).expand(3, COUNT)
    for drawn in (torch.bernoulli(p), torch.empty(3, COUNT, dtype=torch.int32, device=DEVICE).bernoulli_(p)):
        assert drawn.cpu().double().mean(1).tolist() == pytest.approx([0, 0.25, 1], abs=0.01)
    row = torch.empty(5, COUNT, device=DEVICE).bernoulli_(torch.tensor(0.25))  # a number on the CPU
    assert row.cpu().mean().item() == pytest.approx(0.25, abs=0.01)
    with pytest.raises(RuntimeError, match=r"floating-point"):
        torch.empty(3, device=DEVICE).bernoulli_(torch.ones(3, dtype=torch.int64, device=DEVICE))


def test_a_probability_out_of_range_is_found_at_the_next_wait():
    torch.bernoulli(full(1.5, 3))
    with pytest.raises(torch.AcceleratorError, match=r"aten::bernoulli_.*p to be in \[0, 1\]"):
        torch.openreg.synchronize()
    torch.openreg.reset_device()


@pytest.mark.parametrize("rate", [0.0, 0.3, 4.0, 60.0, 5000.0])
def test_poisson(rate):
    x = torch.poisson(full(rate, dtype=torch.float64)).cpu()
    assert x.frac().abs().max().item() == 0
    assert x.mean().item() == pytest.approx(rate, rel=0.02, abs=1e-9)
    assert x.var().item() == pytest.approx(rate, rel=0.04, abs=1e-9)


@pytest.mark.parametrize("rate", [2.0**63, 1e30, float("inf")])
def test_a_poisson_rate_beyond_what_is_drawn_is_refused_and_keeps_no_engine_busy(run_python, rate):
    code = f"""
import torch, openreg_ops
largest = torch.full((3,), 2.0**63 - 1024, dtype=torch.float64, device="openreg")
print((torch.poisson(largest) / 2.0**63 > 0.99).all().item())
torch.poisson(torch.full((3,), float("{rate}"), device="openreg"))
try:
    torch.openreg.synchronize()
except torch.AcceleratorError as error:
    print("below 2^63" in str(error) and "aten::poisson" in str(error))
"""
    assert run_python(code).stdout.split() == ["True", "True"]


def test_a_binomial_count_that_is_no_number_gives_none(run_python):
    code = """
import torch, openreg_ops
p = torch.tensor([0.3, 0.7, 1.0, float("nan")], device="openreg")
print(torch.binomial(torch.full((4,), float("nan"), device="openreg"), p).isnan().all().item())
"""
    assert run_python(code).stdout.split() == ["True"]


@pytest.mark.parametrize(("count", "p"), [(10, 0.0), (10, 1.0), (10, 0.3), (1000, 0.01), (1000, 0.7)])
def test_binomial(count, p):
    x = torch.binomial(full(count), full(p, 1)).cpu()
    assert x.mean().item() == pytest.approx(count * p, rel=0.02)
    assert x.var().item() == pytest.approx(count * p * (1 - p), rel=0.04)
    with pytest.raises(ValueError, match=r"floating-point dtypes for count"):
        torch.binomial(full(1).long(), full(1))


@pytest.mark.parametrize("shape", [0.2, 1.0, 7.5])
def test_gamma(shape):
    x = torch._standard_gamma(full(shape)).cpu().double()
    assert x.min().item() > 0
    assert x.mean().item() == pytest.approx(shape, rel=0.03)
    assert x.var().item() == pytest.approx(shape, rel=0.06)


def test_dirichlet():
    concentration = torch.tensor([1.0, 2.0, 5.0], device=DEVICE).expand(COUNT, 3)
    x = torch._sample_dirichlet(concentration).cpu()
    torch.testing.assert_close(x.sum(1), torch.ones(COUNT))
    assert x.mean(0).tolist() == pytest.approx([1 / 8, 2 / 8, 5 / 8], abs=0.005)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_dirichlet_gives_neither_zero_nor_one(dtype):
    x = torch._sample_dirichlet(full(1e-4, 1000, 2, dtype=torch.float64).to(dtype)).cpu()
    limits = torch.finfo(dtype)
    assert x.min().item() >= limits.tiny
    assert x.max().item() <= 1 - limits.eps / 2


def test_distributions_of_torch():
    with torch.device(DEVICE):
        beta = torch.distributions.Beta(torch.tensor(2.0), torch.tensor(6.0))
    concentration = torch.tensor(3.0, device=DEVICE, requires_grad=True)
    assert beta.sample((COUNT,)).cpu().mean().item() == pytest.approx(0.25, abs=0.005)
    torch.distributions.Gamma(concentration, torch.ones((), device=DEVICE)).rsample((COUNT,)).mean().backward()
    assert concentration.grad.item() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32], ids=str)
def test_permutations(dtype):
    x = torch.randperm(1000, dtype=dtype, device=DEVICE)
    assert x.dtype == dtype
    assert x.cpu().sort().values.long().equal(torch.arange(1000))
    assert torch.randperm(0, device=DEVICE).shape == (0,)
    torch.manual_seed(1)
    places = torch.stack([torch.randperm(4, device=DEVICE).cpu() for _ in range(2000)])
    for column in range(4):
        counts = places[:, column].bincount(minlength=4) / 2000
        torch.testing.assert_close(counts, torch.full((4,), 0.25), atol=0.05, rtol=0)
    with pytest.raises(RuntimeError, match=r"n is too large"):
        torch.randperm(300, dtype=torch.uint8, device=DEVICE)


def test_a_permutation_into_expanded_memory_is_refused_and_draws_nothing():
    state = torch.openreg.get_rng_state()
    with pytest.raises(RuntimeError, match=r"more than one element"):
        torch.randperm(3, out=torch.empty(1, dtype=torch.int64, device=DEVICE).expand(3))
    assert torch.openreg.get_rng_state().equal(state)
    torch.openreg.synchronize()


def test_multinomial_with_replacement():
    weights = torch.tensor([[0.0, 1.0, 3.0], [2.0, 0.0, 0.0]], device=DEVICE)
    x = torch.multinomial(weights, COUNT, replacement=True).cpu()
    first = x[0].bincount(minlength=3) / COUNT
    torch.testing.assert_close(first, torch.tensor([0, 0.25, 0.75]), atol=0.01, rtol=0)
    assert x[1].unique().tolist() == [0]
    torch.multinomial(torch.zeros(3, device=DEVICE), 2, replacement=True)
    with pytest.raises(torch.AcceleratorError, match=r"aten::multinomial.*must be positive"):
        torch.openreg.synchronize()
    torch.openreg.reset_device()


def test_multinomial_without_categories(run_python):
    """In a process of its own, which an engine that reads a category would end."""
    code = """
import torch
import openreg_ops
weights, out = torch.empty(2, 0, device="openreg"), torch.empty(0, dtype=torch.int64, device="openreg")
for call in (lambda: torch.multinomial(weights, 2, True), lambda: torch.multinomial(weights, 2, True, out=out)):
    try:
        call()
        torch.openreg.synchronize()
    except RuntimeError as error:
        print("at least one category" in str(error))
"""
    result = run_python(code)
    assert result.stdout.split() == ["True", "True"], result.stderr


def test_multinomial_with_a_negative_weight_that_no_sum_shows():
    def draw():
        torch.multinomial(torch.tensor([1.0, -1e-20], device=DEVICE), 2, replacement=True)
        torch.openreg.synchronize()

    with pytest.raises(torch.AcceleratorError, match=r"probability entry < 0"):
        draw()
    torch.openreg.reset_device()


def test_multinomial_on_two_devices():
    on_device, on_host = torch.ones(3, device=DEVICE), torch.ones(3)
    out = torch.empty(0, dtype=torch.int64)
    for weights, result in ((on_host, out.to(DEVICE)), (on_device, out)):
        for replacement in (True, False):
            with pytest.raises(RuntimeError, match="same device"):
                torch.multinomial(weights, 2, replacement, out=result)


def test_multinomial_without_replacement():
    weights = torch.tensor([0.0, 1.0, 3.0, 4.0], device=DEVICE).expand(20_000, 4)
    x = torch.multinomial(weights, 3).cpu()
    assert x.sort(1).values.unique(dim=0).tolist() == [[1, 2, 3]]
    first = x[:, 0].bincount(minlength=4) / 20_000
    torch.testing.assert_close(first, torch.tensor([0, 0.125, 0.375, 0.5]), atol=0.02, rtol=0)
    with pytest.raises(RuntimeError, match=r"n_sample > prob_dist.size"):
        torch.multinomial(full(1, 3), 5)


def test_weights_that_are_no_probabilities_are_found_at_the_next_wait():
    def draw():
        torch.multinomial(torch.tensor([-1.0, 2.0], device=DEVICE), 1)  # a later launch of it may know already
        torch.openreg.synchronize()

    with pytest.raises(torch.AcceleratorError, match=r"probability tensor contains"):
        draw()
    torch.openreg.reset_device()


def test_random_relu():
    x = torch.randn(COUNT, device=DEVICE)
    y = functional.rrelu(x, 0.1, 0.3, training=True)
    slope = (y / x).cpu()
    positive = x.cpu() > 0
    assert slope[positive].sub(1).abs().max().item() < 1e-6
    assert 0.1 - 1e-6 <= slope[~positive].min().item() < 0.11
    assert 0.29 < slope[~positive].max().item() <= 0.3 + 1e-6
    check(functional.rrelu, torch.randn(5, 7, requires_grad=True), training=False)
    leaf = torch.randn(50, device=DEVICE, requires_grad=True)
    z = functional.rrelu(leaf, 0.1, 0.3, training=True)
    z.sum().backward()
    torch.testing.assert_close(leaf.grad, (z / leaf).detach())
    own = torch.randn(5, device=DEVICE)
    assert functional.rrelu_(own, 0.5, 0.5, training=True) is own
