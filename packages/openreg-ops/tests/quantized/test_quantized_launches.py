# SPDX-License-Identifier: BSD-3-Clause
"""Operators on quantized tensors launch asynchronously after a synchronous first call, and graphs can capture them."""

import gc
import threading
import weakref

import pytest
import torch
from parity import DEVICE, is_busy
from quantized_samples import assert_equal, convolution_weights, linear_weights, numbers, quantized, signed

pytestmark = [
    pytest.mark.no_fallback,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

QUANTIZED = torch.ops.quantized


# When the host waits


def layers():
    weights, filters = linear_weights(), convolution_weights(2)
    wide, image = signed(3, 8).to(DEVICE), quantized(2, 4, 6, 6).to(DEVICE)
    bytes_, x = quantized(3, 8).to(DEVICE), numbers(3, 8).to(DEVICE)
    return {
        "quantize": lambda: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
        "dequantize": lambda: wide.dequantize(),
        "integers": lambda: wide.int_repr(),
        "copy": lambda: wide.clone(),
        "views": lambda: wide.t().reshape(-1),
        "fake quantization": lambda: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127),
        "relu": lambda: wide.relu(),
        "in place": lambda: torch.relu_(wide),
        "add": lambda: QUANTIZED.add(wide, wide, 0.1, 0),
        "comparison": lambda: wide > 0.5,
        "concatenation": lambda: torch.cat([wide, wide]),
        "linear": lambda: QUANTIZED.linear(bytes_, weights, 0.1, 0),
        "dynamic linear": lambda: QUANTIZED.linear_dynamic(x, weights),
        "convolution": lambda: QUANTIZED.conv2d(image, filters, 0.1, 0),
    }


@pytest.mark.parametrize("name", list(layers()))
def test_the_host_goes_on(name, gate):
    call = layers()[name]
    call()  # PyTorch warns once about the kernel
    torch.openreg.synchronize()
    gate.close()
    call()
    assert is_busy()


def test_parameters_of_a_whole_tensor_need_no_waiting(gate):
    x = numbers(3, 4).to(DEVICE)
    gate.close()
    there = torch.quantize_per_tensor(x, 0.25, 3, torch.quint8)
    assert (there.q_scale(), there.q_zero_point(), there.qscheme()) == (0.25, 3, torch.per_tensor_affine)
    assert is_busy()


def test_the_first_call_of_another_kind_is_synchronous():
    for width in (4, 5):
        for dtype in (torch.quint8, torch.qint8):
            here = quantized(3, width, dtype=dtype)
            assert_equal(here.to(DEVICE).sigmoid(), here.sigmoid())
    for scale in (0.1, 0.2):
        here = quantized(3, 4, scale=scale)
        assert_equal(here.to(DEVICE).relu(), here.relu())


def test_what_data_decide_is_found_out_each_time():
    here = quantized(3, 4)
    there = here.to(DEVICE)
    for number in (2.0, -0.5, 7.0):
        value = torch.tensor(number)
        expected = QUANTIZED.add_scalar(here, value)
        assert_equal(QUANTIZED.add_scalar(there, value), expected)
        assert_equal(QUANTIZED.add_scalar(there, value.to(DEVICE)), expected)
        assert_equal(there[there > number / 10], here[here > number / 10])


def test_an_output_that_grows():
    index = torch.tensor([2, 0])
    for out in (quantized(0), quantized(2, 4), quantized(0)):
        theirs, ours = out.clone(), out.to(DEVICE)
        torch.index_select(quantized(3, 4), 0, index, out=theirs)
        torch.index_select(quantized(3, 4).to(DEVICE), 0, index.to(DEVICE), out=ours)
        assert_equal(ours, theirs)


def test_what_has_run_once_needs_no_host(gate):
    there = quantized(3, 4).to(DEVICE)
    there.sigmoid()
    before = torch.openreg.get_sync_debug_mode()
    torch.openreg.set_sync_debug_mode("error")
    try:
        there.sigmoid()
        with pytest.raises(RuntimeError, match="waits"):
            there[:, :3].contiguous().sigmoid()
    finally:
        torch.openreg.set_sync_debug_mode(before)


# Graphs and threads


def test_a_graph_records_what_has_run_once():
    weights = linear_weights()
    x = quantized(3, 8).to(DEVICE)

    def call():
        return QUANTIZED.linear(x, weights, 0.37, 11).sigmoid()

    with (
        pytest.raises(NotImplementedError, match="Run it once before the capture"),
        torch.openreg.graph(torch.openreg.Graph()),
    ):
        call()
    call()
    graph = torch.openreg.Graph()
    with torch.openreg.graph(graph):
        result = call()
    for seed in (3, 11):
        here = quantized(3, 8, seed=seed)
        x.copy_(here)
        graph.replay()
        assert_equal(result, QUANTIZED.linear(here, weights, 0.37, 11).sigmoid())


def test_threads_share_the_cache_of_first_calls():
    here, weights = quantized(3, 8), linear_weights()
    expected, failures = QUANTIZED.linear(here, weights, 0.41, 12), []

    def work():
        try:
            for _ in range(20):
                assert_equal(QUANTIZED.linear(here.to(DEVICE), weights, 0.41, 12), expected)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# Packed weights


def test_weights_may_go_while_their_launch_waits(gate):
    x, bias = quantized(3, 8).to(DEVICE), numbers(5)
    weights = QUANTIZED.linear_prepack(signed(5, 8), bias)
    expected = QUANTIZED.linear(quantized(3, 8), weights, 0.2, 30)
    QUANTIZED.linear(x, weights, 0.2, 30)
    torch.openreg.synchronize()
    gate.close()
    result = QUANTIZED.linear(x, weights, 0.2, 30)
    del weights, bias
    gc.collect()
    assert is_busy()
    gate.open()
    assert_equal(result, expected)


def test_unused_weights_are_released_with_the_next_ones():
    def use(bias):
        weights = QUANTIZED.linear_prepack(signed(5, 8), bias)
        QUANTIZED.linear(quantized(3, 8).to(DEVICE), weights, 0.2, 30)
        torch.openreg.synchronize()

    bias = numbers(5)
    tracked = weakref.ref(bias)
    use(bias)
    del bias
    gc.collect()
    use(numbers(5))
    gc.collect()
    assert tracked() is None


def test_weights_of_one_address_are_not_taken_for_each_other():
    here = quantized(3, 8)
    for outputs in (5, 6, 7, 5):
        weights = QUANTIZED.linear_prepack(signed(outputs, 8), None)
        expected = QUANTIZED.linear(here, weights, 0.2, 30)
        for _ in range(2):
            assert_equal(QUANTIZED.linear(here.to(DEVICE), weights, 0.2, 30), expected)
        del weights


def packed(name, *arguments):
    return getattr(QUANTIZED, name)(*arguments)


PREPACKS = {
    "linear": lambda d: packed("linear_prepack", signed(5, 8).to(d), numbers(5).to(d)),
    "half": lambda d: packed("linear_prepack_fp16", numbers(5, 8).to(d), numbers(5).to(d)),
    "conv1d": lambda d: packed("conv1d_prepack", signed(6, 4, 3).to(d), numbers(6).to(d), [1], [1], [1], 1),
    "conv2d": lambda d: packed("conv2d_prepack", signed(6, 4, 3, 3).to(d), None, [1, 1], [1, 1], [1, 1], 1),
    "conv2d, old": lambda d: packed("conv_prepack", signed(6, 4, 3, 3).to(d), None, [1, 1], [1, 1], [1, 1], 1),
    "conv3d": lambda d: packed("conv3d_prepack", signed(6, 4, 3, 3, 3).to(d), None, [1] * 3, [1] * 3, [1] * 3, 1),
    "transposed 1d": lambda d: packed("conv_transpose1d_prepack", signed(4, 6, 3).to(d), None, [1], [1], [0], [1], 1),
    "transposed 2d": lambda d: packed(
        "conv_transpose2d_prepack", signed(4, 6, 3, 3).to(d), None, [1] * 2, [1] * 2, [0] * 2, [1] * 2, 1
    ),
    "transposed 3d": lambda d: packed(
        "conv_transpose3d_prepack", signed(4, 6, 3, 3, 3).to(d), None, [1] * 3, [1] * 3, [0] * 3, [1] * 3, 1
    ),
}
UNPACK = {"linear": "linear_unpack", "half": "linear_unpack_fp16"}


@pytest.mark.parametrize("name", PREPACKS)
def test_weights_of_the_device_are_packed_on_the_host(name):
    unpack = getattr(QUANTIZED, UNPACK.get(name, "conv3d_unpack" if "3d" in name else "conv2d_unpack"))
    if "1d" in name:
        unpack = QUANTIZED.conv1d_unpack
    ours, theirs = (unpack(PREPACKS[name](device)) for device in (DEVICE, "cpu"))
    for one, other in zip(ours, theirs, strict=True):
        assert (one is None) == (other is None)
        if other is not None:
            assert one.device.type == "cpu"
            assert (one.int_repr() if one.is_quantized else one).equal(
                other.int_repr() if other.is_quantized else other
            )


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.fbgemm_pack_gemm_matrix_fp16(x),
        lambda x: torch.fbgemm_linear_quantize_weight(x),
        lambda x: torch.ops._quantized.wrapped_fbgemm_pack_gemm_matrix_fp16(x),
        lambda x: QUANTIZED.linear_prepack_fp16_legacy(x),
    ],
)
def test_packed_weights_of_old_are_refused(call):
    with pytest.raises(NotImplementedError, match=r"torch\.ao\.nn\.quantized\.dynamic"):
        call(numbers(5, 8).to(DEVICE))
