# SPDX-License-Identifier: BSD-3-Clause
"""Every collective on two, three and four ranks gives NumPy's results, for every dtype and layout."""

import collectives
import pytest
from values import EVERY, INTEGERS, LAYOUTS

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch")

REDUCIBLE = [dtype for dtype in EVERY if dtype != "complex32"]
CALLS = [collectives.all_reduce, collectives.reduce, collectives.reduce_scatter, collectives.movers]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_layouts(two, call, layout):
    two.run(call, "float32", layout)


@pytest.mark.covers("registration.torch.distributed.Backend.register_backend")
@pytest.mark.parametrize("dtype", EVERY)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_dtypes(two, call, dtype):
    two.run(call, dtype, "transposed")


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
@pytest.mark.parametrize("dtype", ["float32", "uint64", "bool"])
def test_three_and_four_ranks(three, four, call, dtype):
    three.run(call, dtype, "contiguous")
    four.run(call, dtype, "strided")


def test_one_rank(own):
    one = own(1)
    for call in CALLS:
        one.run(call, "float32", "strided")
    one.run(collectives.objects)
    assert one.end() == [0]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_an_average_of_integers_is_cut_off(two, three, dtype):
    two.run(collectives.average_of_integers, dtype)
    three.run(collectives.average_of_integers, dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_sum_of_what_was_multiplied_before(two, dtype):
    two.run(collectives.premultiplied, dtype)


@pytest.mark.parametrize("call", [collectives.uneven_movers, collectives.uneven_reduce_scatter], ids=["move", "reduce"])
def test_parts_of_different_sizes(two, three, call):
    two.run(call)
    three.run(call)


def test_calls_that_are_coalesced(two):
    two.run(collectives.coalesced)


def test_messages_of_all_to_all(two, four):
    two.run(collectives.batch_of_messages)
    four.run(collectives.batch_of_messages)


def test_a_message_from_anybody_tells_its_source(three):
    three.run(collectives.any_source)


def test_messages_with_different_tags_pass_each_other(two):
    two.run(collectives.tags_in_another_order)


def test_objects(two, three):
    two.run(collectives.objects)
    three.run(collectives.objects)


def test_groups_of_some_ranks(four):
    four.run(collectives.sub_groups)


@pytest.mark.covers("registration.torch.distributed.Backend.register_backend")
def test_the_group_has_the_name(two):
    assert two.run(collectives.names) == [("occl", "occl")] * 2


@pytest.mark.parametrize("backend", ["occl", "cpu:gloo,openreg:occl", "openreg:occl,cpu:gloo"])
def test_a_group_in_parts(own, backend):
    ranks = own(4, TEST_BACKEND=backend, TEST_DEVICE_ID="1")
    for call in (collectives.split, collectives.mesh, collectives.sub_groups):
        ranks.run(call)
    assert ranks.end() == [0] * 4


def test_tensors_of_the_cpu_beside_those_of_the_device(own):
    ranks = own(2, TEST_BACKEND="cpu:gloo,openreg:occl")
    ranks.run(collectives.mixed_backends)
    assert ranks.end() == [0, 0]


def test_detail_lets_right_calls_pass(own):
    ranks = own(2, TORCH_DISTRIBUTED_DEBUG="DETAIL")
    ranks.run(collectives.all_reduce, "float32", "contiguous")
    ranks.run(collectives.movers, "float32", "contiguous")
    ranks.run(collectives.objects)
    assert ranks.end() == [0, 0]
