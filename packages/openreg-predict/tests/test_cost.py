# SPDX-License-Identifier: BSD-3-Clause
"""Operators get the operations and bytes that were counted by hand, and a chip turns them into a time."""

import dataclasses

import pytest
import torch
from torch import distributed, nn
from torch.distributed import _functional_collectives as functional_collectives

import openreg_predict
from openreg_predict import cost, description
from openreg_predict.predict import predict
from openreg_predict.trace import TraceError, trace
from openreg_predict.work import OperatorWork


def works(step):
    return {call.name.removeprefix("aten::"): call.work for call in trace(step).calls if call.work.kernels}


@pytest.fixture
def meta():
    with torch.device("meta"):
        yield


def test_a_matrix_product(meta):
    a, b, bias = torch.empty(8, 16), torch.empty(16, 32), torch.empty(32)
    assert works(lambda: a @ b)["mm"] == OperatorWork(
        "matmul", "float32", "matrix", 8192, 4 * (128 + 512 + 256), (1, 8, 32, 16)
    )
    work = works(lambda: torch.addmm(bias, a, b))["addmm"]
    assert (work.flops, work.size, work.product) == (8192, 4 * (128 + 512 + 256 + 32), (1, 8, 32, 16))


def test_a_batch_of_products(meta):
    a, b = torch.empty(4, 8, 16, dtype=torch.bfloat16), torch.empty(4, 16, 32, dtype=torch.bfloat16)
    work = works(lambda: torch.bmm(a, b))["bmm"]
    assert (work.kind, work.dtype, work.flops, work.product) == (
        "batched_matmul",
        "bfloat16",
        4 * 8192,
        (4, 8, 32, 16),
    )


def test_a_convolution_and_its_gradients(meta):
    layer, images = nn.Conv2d(3, 16, 3, padding=1), torch.empty(2, 3, 8, 8)
    forward = 2 * (2 * 8 * 8) * 16 * (3 * 9)
    found = works(lambda: layer(images).sum().backward())
    assert found["convolution"].flops == forward
    assert found["convolution"].product == (1, 128, 16, 27)
    assert found["convolution_backward"].flops == forward  # of the weight alone: images need no gradient


def test_elementwise_work_counts_distinct_bytes(meta):
    a, row = torch.empty(8, 16), torch.empty(16)
    assert works(lambda: a + row)["add"].size == 4 * (128 + 16 + 128)
    assert works(lambda: a + row.expand(8, 16))["add"].size == 4 * (128 + 16 + 128)
    assert works(lambda: a + a)["add"].size == 4 * (128 + 128)
    assert works(lambda: a.mul_(2))["mul_"].size == 4 * (128 + 128)
    assert works(lambda: a.zero_())["zero_"].size == 4 * 128


def test_views_cost_nothing(meta):
    a = torch.empty(8, 16)
    assert works(lambda: a.t().unsqueeze(0).expand(3, 16, 8)[1:].view(2, 16, 8)) == {}


def test_classes(meta):
    a, table, index = torch.empty(8, 16), torch.empty(100, 16), torch.zeros(8, dtype=torch.int64)
    norm = nn.LayerNorm(16)
    parameter = nn.Parameter(torch.empty(16))
    parameter.grad = torch.empty(16)
    optimizer = torch.optim.AdamW([parameter], foreach=True)

    def step():
        nn.functional.embedding(index, table)
        norm(a).softmax(1).sum()
        nn.functional.dropout(a)
        a.to(torch.float16)
        optimizer.step()

    found = {call.name.removeprefix("aten::"): call.work for call in trace(step).calls}
    assert {name: found[name].kind for name in found if found[name].kernels} | {
        "embedding": "embedding",
        "native_layer_norm": "normalization",
        "_softmax": "softmax",
        "sum": "reduction",
        "native_dropout": "random",
        "_to_copy": "copy",
        "_foreach_addcdiv_": "optimizer",
    } == {name: found[name].kind for name in found if found[name].kernels}
    assert found["embedding"].size == 2 * 4 * 8 * 16 + 8 * 8  # rows read and written, and indices: not the table


def test_attention_fused_and_not(meta):
    q = torch.empty(2, 4, 64, 32)
    fused = works(lambda: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, q, q, 0.0, False))[
        "_scaled_dot_product_flash_attention_for_cpu"
    ]
    flops = 2 * 2 * (2 * 4) * 64 * 64 * 32
    assert (fused.kind, fused.flops) == ("attention", flops)
    apart = works(lambda: torch.softmax(q @ q.transpose(-1, -2), -1) @ q)
    assert apart["bmm"].flops * 2 == flops
    assert fused.size < apart["bmm"].size + apart["_softmax"].size


def test_attention_with_fewer_keys_than_queries_is_fused_too(meta):
    query, key = torch.empty(2, 8, 64, 32), torch.empty(2, 2, 64, 32)
    program = trace(lambda: nn.functional.scaled_dot_product_attention(query, key, key, enable_gqa=True))
    (work,) = [call.work for call in program.calls if call.work.kernels]
    assert (work.kind, work.flops) == ("attention", 2 * 2 * (2 * 8) * 64 * 64 * 32)


def test_products_of_narrow_dtypes(meta):
    a, b, scale = torch.empty(32, 64), torch.empty(128, 64), torch.empty(1)
    narrow = (a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t())
    works_of_both = works(
        lambda: (
            torch._scaled_mm(*narrow, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16),
            torch._int_mm(a.to(torch.int8), b.to(torch.int8).t()),
        )
    )
    assert (works_of_both["_scaled_mm"].dtype, works_of_both["_int_mm"].dtype) == ("float8_e4m3fn", "int8")
    assert works_of_both["_scaled_mm"].flops == works_of_both["_int_mm"].flops == 2 * 32 * 64 * 128
    prediction = predict(trace(lambda: torch._scaled_mm(*narrow, scale, scale)), openreg_predict.load("h100"))
    assert not any("no rate" in note for note in prediction.notes())


def test_autocast_of_any_device_casts_as_on_an_accelerator(meta):
    layer, norm, x = nn.Linear(32, 16), nn.LayerNorm(16), torch.empty(8, 32)

    def step(device):
        with torch.autocast(device, dtype=torch.bfloat16):
            y = norm(layer(x))
            z = layer(x) @ y.t()
            with torch.autocast(device, enabled=False):
                w = x @ x.t()
        return z.softmax(-1).dtype, z.dtype, y.dtype, w.dtype

    for device in ("cuda", "cpu", "openreg"):
        found = []
        program = trace(lambda device=device, found=found: found.append(step(device)))
        assert found[-1] == (torch.bfloat16, torch.bfloat16, torch.float32, torch.float32)
        # The weight and the bias once, the input of each product, and what the norm takes and gives.
        assert sum(call.name == "aten::_to_copy" for call in program.calls) == 6
        assert {call.work.dtype for call in program.calls if call.name == "aten::addmm"} == {"bfloat16"}
    assert torch.autocast("cpu").fast_dtype == torch.bfloat16  # PyTorch's own again


def test_collectives_send_their_share_over_the_link(meta):
    from torch.testing._internal.distributed.fake_pg import FakeStore

    own, whole = torch.empty(1024), torch.empty(4096)
    distributed.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
    try:

        def step():
            distributed.all_reduce(own)
            distributed.all_gather_single(whole, own)
            distributed.broadcast(own, 0)
            functional_collectives.all_reduce(own, "sum", distributed.group.WORLD)

        found = {call.name: call.work for call in trace(step).calls if call.work.link}
    finally:
        distributed.destroy_process_group()
    assert {work.link for work in found.values()} == {"peer"}
    assert {name: work.size for name, work in found.items()} == {
        "c10d::allreduce_": 4096 * 2 * 3 // 4,
        "c10d::_allgather_base_": 16384 * 3 // 4,
        "c10d::broadcast_": 4096,
        "_c10d_functional::all_reduce": 4096 * 2 * 3 // 4,
    }
    chip = openreg_predict.load("h100")
    times = {name: cost.cost_of(chip, work) for name, work in found.items()}
    assert {time.bound for time in times.values()} == {"link"}
    # One message, a message to each of three others, and twice as many; each begins after the latency.
    assert times["c10d::broadcast_"].seconds == pytest.approx(5e-6 + 4096 / 450e9)
    assert times["c10d::_allgather_base_"].seconds == pytest.approx(3 * 5e-6 + 12288 / 450e9)
    assert times["c10d::allreduce_"].seconds == pytest.approx(6 * 5e-6 + 6144 / 450e9)


def test_an_operator_without_a_rule_is_named_and_costs_what_its_bytes_cost(meta):
    library = torch.library.Library("openreg_predict_test", "DEF")
    library.define("strange(Tensor x) -> Tensor")
    library.impl("strange", torch.empty_like, "Meta")
    a = torch.empty(1 << 20)
    prediction = predict(trace(lambda: torch.ops.openreg_predict_test.strange(a)), openreg_predict.load("a100"))
    assert prediction.seconds > 8 * 2**20 / 1555e9
    assert any("openreg_predict_test::strange (1)" in note for note in prediction.notes())


def test_what_needs_values_is_refused_with_the_way_out(meta):
    a = torch.empty(4)
    with pytest.raises(TraceError, match=r"_local_scalar_dense needs the values .*--assume"):
        trace(lambda: a.sum().item())
    with pytest.raises(TraceError, match=r"aten::nonzero cannot run on meta.*depends on data.*--on openreg"):
        trace(lambda: a.nonzero())
    with pytest.raises(TraceError, match=r"aten::_to_copy needs the values of a tensor of the shape \(4,\)"):
        trace(lambda: a.tolist())
    found = []
    assert trace(lambda: found.append((a.sum().item(), a.tolist(), bool((a > 0).all()))), assume=1.0).calls
    assert found[-1] == (1.0, [1.0] * 4, True)


def test_an_operator_without_meta_function_is_refused_with_the_way_out(meta):
    a = torch.empty(4)
    with pytest.raises(TraceError, match=r"no meta function is registered; .*library\.register_fake.*--on openreg"):
        trace(lambda: torch.fake_quantize_per_tensor_affine(a, 0.1, 0, -128, 127))


def test_the_host_waits_for_a_number():
    """Two kernels that could be launched one after the other, with a look at a number between them."""
    with torch.device("meta"):
        a = torch.empty(1 << 26)
    chip = openreg_predict.load("a100")

    def step(looks):
        a.exp_()
        if looks:
            a[0].item()
        a.exp_()

    with_wait, without = (predict(trace(lambda looks=looks: step(looks), assume=1.0), chip) for looks in (True, False))
    assert with_wait.seconds > without.seconds + chip.links["host"].latency.value
    assert with_wait.host_seconds > without.device_seconds / 2


CHIP = dataclasses.replace(
    openreg_predict.load("a100").plain(),
    parallel_units=4,
    rates={("vector", "float32"): description.Quantity(1e12, "assumed")},
    memory_bandwidth=description.Quantity(1e11, "assumed"),
    links={},
)


def test_the_roofline():
    bound = cost.cost_of(CHIP, OperatorWork("matmul", flops=10**9, size=10**6, unit="matrix"))
    assert (bound.seconds, bound.bound) == (pytest.approx(1e-3), "compute")
    bound = cost.cost_of(CHIP, OperatorWork("elementwise", flops=10**6, size=10**9))
    assert (bound.seconds, bound.bound) == (pytest.approx(1e-2), "memory")


@pytest.mark.parametrize("name", ["a100", "cpu"])
def test_products_without_elements_or_without_depth_take_the_time_of_their_bytes(meta, name):
    x, weight, bias = torch.empty(8, 16), torch.empty(32, 16), torch.empty(32)

    def step():
        nn.functional.linear(x[:0], weight, bias)
        x[:, :0] @ weight[:, :0].t()

    prediction = predict(trace(step), openreg_predict.load(name))
    assert [call.work.flops for call in prediction.program.calls if call.work.kernels] == [0, 0]
    assert 0 < prediction.seconds < 1e-3


def test_what_fits_into_a_cache_moves_at_its_bandwidth_unless_that_was_measured():
    cache = description.Cache(2, description.Quantity(1e6, "assumed"), description.Quantity(1e12, "assumed"))
    chip = dataclasses.replace(CHIP, caches=(cache,))
    assert cost.cost_of(chip, OperatorWork("elementwise", size=10**6)).seconds == pytest.approx(1e-6)
    assert cost.cost_of(chip, OperatorWork("elementwise", size=10**7)).seconds == pytest.approx(1e-4)
    measured = description.Efficiency(memory=description.Curve(((1.0, 1.0),), "measured"))
    chip = dataclasses.replace(chip, efficiencies={**chip.efficiencies, "elementwise": measured})
    assert cost.cost_of(chip, OperatorWork("elementwise", size=10**6)).seconds == pytest.approx(1e-5)


def test_launches_bound_what_is_short():
    chip = dataclasses.replace(CHIP, launch_device=description.Quantity(2e-6, "assumed"))
    bound = cost.cost_of(chip, OperatorWork("elementwise", flops=10, size=100))
    assert (bound.seconds, bound.bound) == (pytest.approx(2e-6, rel=1e-2), "launch")


def test_tiles_and_rounds_that_are_not_full():
    assert cost.utilization((1, 256, 256, 8), ((128, 128),), 4) == 1.0
    assert cost.utilization((1, 128, 128, 8), ((128, 128),), 4) == 0.25
    assert cost.utilization((1, 64, 128, 8), ((128, 128),), 1) == 0.5
    assert cost.utilization((5, 128, 128, 8), ((128, 128),), 4) == 5 / 8
    assert cost.utilization((1, 64, 128, 8), ((128, 128), (64, 64)), 2) == 1.0


def test_a_missing_rate_is_that_of_the_next_wider_dtype_and_said():
    with torch.device("meta"):
        a = torch.empty(256, 256, dtype=torch.bfloat16)
    prediction = predict(trace(lambda: a @ a), openreg_predict.load("v100"))
    assert "v100 has no rate for bfloat16: the rate of float32 was taken" in prediction.notes()


def test_every_prediction_says_how_it_was_validated():
    with torch.device("meta"):
        a = torch.empty(256, 256, dtype=torch.bfloat16)
    prediction = predict(trace(lambda: a @ a), openreg_predict.load("h100"))
    assert prediction.error_text() == "not validated for inference in bfloat16 on h100"
    low, high = prediction.range
    assert low < prediction.seconds < high


def test_errors_of_other_programs_say_nothing_of_other_operators():
    with torch.device("meta"):
        product, image, weight = torch.empty(4096, 4096), torch.empty(64, 64, 56, 56), torch.empty(64, 64, 3, 3)
        small = torch.empty(8, 8)
    chip = openreg_predict.load("v100")

    def text(step):
        return predict(trace(step), chip).error_text()

    assert text(lambda: product @ product).startswith("validated error: mean")
    assert "of its time is in operators of the class 'convolution'" in text(lambda: nn.functional.conv2d(image, weight))
    assert "bound by the host's launches" in text(lambda: small @ small)


def test_a_model_that_does_not_fit_is_said():
    with torch.device("meta"):
        a = torch.empty(5 * 2**30)
    prediction = predict(trace(lambda: a + 1), openreg_predict.load("p100"))
    assert not prediction.fits
    assert any("does not fit: the peak is 40.00 GiB and p100 has 16.00 GiB" in note for note in prediction.notes())
