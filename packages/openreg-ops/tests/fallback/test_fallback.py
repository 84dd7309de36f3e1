# SPDX-License-Identifier: BSD-3-Clause
"""Operators without a kernel run on the CPU with right results, and are counted. Unsafe fallbacks are refused.

The operators in ON_THE_CPU have kernels of ours, too: these tests send them to the fallback.
"""

import uuid
import warnings

import pytest
import torch
from parity import DEVICE, assert_same, check

pytestmark = pytest.mark.every_subset

HISTC = "aten::histc"
ON_THE_CPU = [HISTC, "aten::histc.out", "aten::kthvalue", "aten::kthvalue.values", "aten::bincount", "aten::put_"]
ON_THE_CPU += ["aten::_cdist_forward", "aten::_cdist_backward", "aten::histogram.bin_ct", "aten::unbind_copy.int"]
ON_THE_CPU += ["aten::_histogramdd_bin_edges", "aten::_histogramdd_from_bin_tensors", "aten::_index_put_impl_"]
ON_THE_CPU += ["aten::linspace.out", "aten::linspace.Tensor_Tensor_out", "aten::tril_indices", "aten::_fft_c2c"]
ON_THE_CPU += ["aten::multinomial", "aten::randperm.generator_out"]


@pytest.fixture(autouse=True)
def on_the_cpu(request):
    if "run_python" in request.fixturenames:
        yield
    else:
        with torch.openreg.fallback_operators(*ON_THE_CPU):
            yield


def histc(x=None):
    return torch.histc(torch.arange(5.0, device=DEVICE) if x is None else x, 5)


def calls(name):
    count = torch.openreg.fallback_stats().get(name)
    return 0 if count is None else count.calls


# Results


def test_results_and_their_gradients_are_the_cpus():
    x = torch.randn(4, 5, requires_grad=True)
    check(lambda t: torch.kthvalue(t, 2, 1), x)
    check(lambda t: torch.histc(t, 4, -1, 1), x.detach())
    check(lambda t: torch.cdist(t, t * 2), x)
    check(torch.bincount, torch.tensor([1, 1, 3]))
    check(torch.histogram, x.detach(), 3)
    assert calls(HISTC) == 1


def test_strided_and_lazy_operands():
    x = torch.randn(6, 8)
    for layout in (x.t(), x[::2, 1:], x[:, :1].expand(6, 4)):
        check(lambda t: torch.kthvalue(t, 2, 1), layout)
    z = torch.randn(4, dtype=torch.complex64)
    check(lambda t: torch.fft.fft(t.conj()), z, tolerance={"rtol": 1e-4, "atol": 1e-4})


def test_operands_are_not_copied():
    x = torch.arange(1 << 16, device=DEVICE).float()
    torch.openreg.synchronize()
    before = torch.openreg.device_stats().bytes_copied
    y = histc(x)
    torch.openreg.synchronize()
    copied = torch.openreg.device_stats().bytes_copied - before
    assert torch.openreg.fallback_stats()[HISTC].bytes == y.numel() * 4 == 20
    assert copied <= 20


def test_in_place_operands_are_worked_on_where_they_are():
    x = torch.zeros(4, device=DEVICE)
    address = x.data_ptr()
    assert x.put_(torch.tensor([1, 3], device=DEVICE), torch.tensor([5.0, 7.0], device=DEVICE)) is x
    assert x.data_ptr() == address
    assert x.cpu().tolist() == [0, 5, 0, 7]
    assert torch.openreg.fallback_stats()["aten::put_"].bytes == 0
    view = x[1:]
    view.put_(torch.tensor([0], device=DEVICE), torch.tensor([9.0], device=DEVICE))
    assert x.cpu().tolist() == [0, 9, 0, 7]


def test_out_is_resized_on_the_device():
    x = torch.arange(5.0, device=DEVICE)
    out = torch.empty(0, device=DEVICE)
    assert torch.histc(x, 5, out=out) is out
    assert out.cpu().tolist() == [1.0] * 5
    wide = torch.zeros(10, device=DEVICE)[::2]
    torch.histc(x, 5, out=wide)
    assert (wide.stride(), wide.cpu().tolist()) == ((2,), [1.0] * 5)
    with pytest.warns(UserWarning, match="was resized"):
        torch.histc(x, 5, out=torch.empty(3, device=DEVICE))
    values, places = torch.empty(0, device=DEVICE), torch.empty(0, dtype=torch.int64, device=DEVICE)
    torch.kthvalue(x, 2, out=(values, places))
    assert (values.item(), places.item()) == (1, 1)


def test_lists_of_tensors():
    x = torch.arange(6.0, device=DEVICE).view(3, 2)
    pieces = torch.ops.aten.unbind_copy(x)
    assert [piece.cpu().tolist() for piece in pieces] == [[0, 1], [2, 3], [4, 5]]
    histogram, edges = torch.histogramdd(x, [2, 2])
    assert histogram.device.type == DEVICE
    assert [edge.device.type for edge in edges] == [DEVICE] * 2
    expected = torch.histogramdd(x.cpu(), [2, 2])
    assert_same((histogram, *edges), (expected[0], *expected[1]))


def test_optional_lists_of_tensors():
    x = torch.zeros(3, 4, device=DEVICE)
    x[torch.tensor([0, 2], device=DEVICE), 1:3] = 5.0
    x[:, torch.tensor([3])] = 7.0  # indices may be on the host
    expected = torch.zeros(3, 4)
    expected[[0, 2], 1:3] = 5
    expected[:, 3] = 7
    torch.testing.assert_close(x.cpu(), expected)


def test_optional_tensors_that_are_missing():
    check(lambda t: torch.bincount(t, None, 5), torch.tensor([1, 1, 3]))
    check(lambda t, w: torch.bincount(t, w), torch.tensor([1, 1, 3]), torch.tensor([0.5, 1.0, 2.0]))


def test_factories():
    x = torch.linspace(0, 1, 3, device="openreg:1")
    assert x.device == torch.device("openreg:1")
    assert x.cpu().tolist() == [0, 0.5, 1]
    assert torch.tril_indices(2, 2, device=DEVICE).cpu().tolist() == [[0, 1, 1], [0, 0, 1]]


def test_the_device_is_that_of_the_operands():
    x = torch.arange(5.0, device="openreg:1")
    assert histc(x).device == torch.device("openreg:1")
    assert torch.openreg.current_device() == 0


def test_a_fallback_waits_for_its_operands(gate):
    x = torch.zeros(5, device=DEVICE)
    gate.close()
    x.copy_(torch.arange(5.0))
    gate.open_soon()
    y = histc(x)
    assert gate.is_open
    assert y.cpu().tolist() == [1.0] * 5


def test_a_0_dim_tensor_of_the_host_is_a_number():
    x = torch.zeros(3, device=DEVICE)
    torch.ops.aten.linspace.Tensor_Tensor_out(torch.tensor(0.0), torch.tensor(1.0), 3, out=x)
    assert x.cpu().tolist() == [0, 0.5, 1]


def test_random_operators_follow_the_devices_generator():
    weights = torch.ones(1000, device=DEVICE)
    torch.manual_seed(3)
    first, second = torch.multinomial(weights, 20), torch.multinomial(weights, 20)
    state = torch.openreg.get_rng_state()
    third = torch.randperm(50, device=DEVICE)
    assert not first.equal(second)
    torch.manual_seed(3)
    assert torch.multinomial(weights, 20).equal(first)
    assert torch.multinomial(weights, 20).equal(second)
    assert torch.openreg.get_rng_state().equal(state)
    assert torch.randperm(50, device=DEVICE).equal(third)
    host = torch.get_rng_state()
    torch.randperm(50, device=DEVICE)
    assert torch.get_rng_state().equal(host)
    generator = torch.Generator(DEVICE).manual_seed(4)
    mine = torch.multinomial(weights, 20, generator=generator)
    assert torch.multinomial(weights, 20, generator=generator.manual_seed(4)).equal(mine)


# Mistakes and refusals


def test_an_exception_keeps_its_type_and_the_device_stays_healthy():
    x = torch.zeros(3, device=DEVICE)
    with pytest.raises(IndexError, match="out of range"):
        x.put_(torch.tensor([7], device=DEVICE), torch.tensor([1.0], device=DEVICE))
    with pytest.raises(RuntimeError, match="out of range"):
        torch.kthvalue(x, 9)
    torch.openreg.synchronize()
    assert (x + 1).sum().item() == 3


def test_operands_on_several_devices_are_refused():
    x, source = torch.zeros(3, device="openreg:0"), torch.ones(1)
    for other in ("cpu", "openreg:1"):
        with pytest.raises(RuntimeError, match=rf"openreg:0 and {other}"):
            x.put_(torch.tensor([1], device="openreg:0"), source.to(other))


def test_a_view_cannot_fall_back():
    with pytest.raises(NotImplementedError, match=r"aten::_values .*gives a view.*PrivateUse1"):
        torch.ops.aten._values(torch.zeros(3, device=DEVICE))


def test_no_view_of_pytorch_falls_back():
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    composite = [
        f"Composite{kind}" for kind in ("ImplicitAutograd", "ExplicitAutograd", "ExplicitAutogradNonFunctional")
    ]
    reach_the_fallback = []
    for name in torch._C._dispatch_get_all_op_names():
        if name.startswith("aten::") and has(name, "CPU"):
            results = torch._C._get_schema(*name.partition(".")[::2]).returns
            is_view = any(result.alias_info is not None and not result.alias_info.is_write for result in results)
            if is_view and not any(has(name, key) for key in ("PrivateUse1", *composite)):
                reach_the_fallback.append(name)
    assert reach_the_fallback == []


def test_an_operator_without_a_cpu_kernel():
    library = torch.library.Library(f"openreg_test_{uuid.uuid4().hex}", "DEF")
    library.define("nowhere(Tensor x) -> Tensor")
    operation = getattr(torch.ops, library.ns).nowhere
    with pytest.raises(NotImplementedError, match=r"nowhere .*CPU"):
        operation(torch.zeros(3, device=DEVICE))
    library._destroy()


def test_a_device_that_failed_before_says_so():
    torch.gather(torch.zeros(3, device=DEVICE), 0, torch.tensor([9], device=DEVICE))
    with pytest.raises(torch.AcceleratorError, match="aten::gather"):
        histc(torch.zeros(3, device=DEVICE))
    torch.openreg.reset_device()
    assert histc().cpu().tolist() == [1.0] * 5


# The record


def test_calls_bytes_and_seconds_are_counted():
    for _ in range(3):
        histc()
    count = torch.openreg.fallback_stats()[HISTC]
    assert (count.calls, count.bytes) == (3, 60)
    assert 0 < count.seconds < 60
    torch.bincount(torch.tensor([1], device=DEVICE))
    assert set(torch.openreg.fallback_stats()) >= {HISTC, "aten::bincount"}
    torch.openreg.reset_fallback_stats()
    assert torch.openreg.fallback_stats() == {}


def test_overloads_are_counted_apart():
    x = torch.arange(5.0, device=DEVICE)
    torch.histc(x, 5, out=torch.empty(0, device=DEVICE))
    assert calls(f"{HISTC}.out") == 1
    assert calls(HISTC) == 0


def test_a_call_that_fails_is_not_counted():
    with pytest.raises(RuntimeError):
        torch.kthvalue(torch.zeros(3, device=DEVICE), 9)
    assert torch.openreg.fallback_stats() == {}


def test_a_profile_shows_what_fell_back_and_where():
    x = torch.arange(5.0, device=DEVICE)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        histc(x)
        x + 1
    events = {event.name: event for event in profile.events()}
    fallback = events[f"openreg::fallback {HISTC}"]
    assert fallback.cpu_parent.name == HISTC
    assert fallback.cpu_time > 0
    assert [name for name in events if name.startswith("openreg::fallback")] == [fallback.name]


# The modes


def test_warnings_come_once_per_operator():
    with torch.openreg.fallback_mode("warn"):
        with pytest.warns(UserWarning, match=rf"{HISTC} .*fallback_stats"):
            histc()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            histc()
        with pytest.warns(UserWarning, match="aten::bincount"):
            torch.bincount(torch.tensor([1], device=DEVICE))
        torch.openreg.reset_fallback_stats()
        with pytest.warns(UserWarning, match=HISTC):
            histc()


def test_errors_name_the_operator_and_the_way_out():
    with (
        torch.openreg.fallback_mode("error"),
        pytest.raises(NotImplementedError, match=rf"{HISTC}.*fallback_mode\('allow'\).*OPENREG_FALLBACK=allow"),
    ):
        histc()
    assert torch.openreg.fallback_stats() == {}
    assert histc().cpu().tolist() == [1.0] * 5


def test_contexts_nest_and_decorate():
    with torch.openreg.fallback_mode("error"):
        with torch.openreg.fallback_mode("allow"):
            histc()
            with torch.openreg.fallback_mode("error"), pytest.raises(NotImplementedError):
                histc()
            histc()
        with pytest.raises(NotImplementedError):
            histc()
    histc()
    strict = torch.openreg.fallback_mode("error")(histc)
    for _ in range(2):
        with pytest.raises(NotImplementedError):
            strict()
    histc()


def test_a_context_ends_with_an_exception():
    with pytest.raises(KeyError), torch.openreg.fallback_mode("error"):
        raise KeyError
    histc()


def test_backward_passes_follow_the_context_of_their_caller():
    x = torch.randn(4, 4, device=DEVICE, requires_grad=True)
    y = torch.cdist(x, x * 2).sum()
    with torch.openreg.fallback_mode("error"), pytest.raises(NotImplementedError, match="aten::_cdist_backward"):
        y.backward()
    torch.cdist(x, x * 2).sum().backward()
    assert x.grad.isfinite().all().item()


@pytest.mark.parametrize("word", ["", "Allow", "never", "1"])
def test_another_word_is_refused(word):
    with pytest.raises(ValueError, match="allow, warn or error"):
        torch.openreg.fallback_mode(word)


SCRIPT = """
import warnings
warnings.simplefilter("error")
import torch, openreg_ops
on_the_cpu = torch.openreg.fallback_operators("aten::histc")
on_the_cpu.__enter__()
try:
    print(torch.histc(torch.arange(5.0, device="openreg"), 5).sum().item())
except (NotImplementedError, UserWarning) as error:
    print(type(error).__name__)
with torch.openreg.fallback_mode("allow"):
    print(torch.histc(torch.arange(5.0, device="openreg"), 5).sum().item())
"""


@pytest.mark.parametrize(
    ("word", "said"), [("allow", "5.0"), ("warn", "UserWarning"), ("error", "NotImplementedError")]
)
def test_the_environment_variable(run_python, word, said):
    result = run_python(SCRIPT, OPENREG_FALLBACK=word)
    assert (result.returncode, result.stdout.split()) == (0, [said, "5.0"]), result.stderr


def test_another_word_in_the_environment_is_refused(run_python):
    code = """
import torch
try:
    import openreg_ops
except (ImportError, ValueError) as error:
    print(error)
print(torch.ones(2).sum().item())
"""
    result = run_python(code, OPENREG_FALLBACK="sometimes")
    refusal, usable = result.stdout.splitlines()
    assert "OPENREG_FALLBACK='sometimes' is not accepted; give allow, warn or error" in refusal
    assert usable == "2.0"
