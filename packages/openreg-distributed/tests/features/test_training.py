# SPDX-License-Identifier: BSD-3-Clause
"""Every kind of parallel training has the losses of one process for 20 steps."""

import pytest
import training

pytestmark = [  # PyTorch's own, of what is deprecated or experimental in it
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
    pytest.mark.filterwarnings("ignore::FutureWarning:torch"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch"),
]

NEAR = 5e-6


@pytest.fixture(scope="module")
def expected():
    return training.alone(0, 1)


def check(losses, expected, near=NEAR):
    for of_rank in losses:
        assert of_rank == pytest.approx(expected, rel=0, abs=near)
    assert expected[-1] < expected[0]


FURTHER = pytest.mark.endurance  # further forms of what the default session runs, each in processes of its own
KINDS = [
    training.ddp,
    pytest.param(training.ddp_static, marks=FURTHER),
    pytest.param(training.ddp_unused, marks=FURTHER),
    training.ddp_hook,
    pytest.param(training.zero, marks=FURTHER),
    pytest.param(training.fsdp1, marks=FURTHER),
    training.fsdp2,
    training.tensor_parallel,
    training.sequence_parallel,
]


@pytest.mark.covers("registration.register_sharding of aten::linear_backward")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_two_ranks(two, expected, kind):
    check(two.run(kind), expected)


def test_mixed_precision_is_near(two, expected):
    check(two.run(training.fsdp2_mixed), expected, near=0.05)


@FURTHER
def test_replicated_shards_on_four_ranks(four, expected):
    check(four.run(training.hsdp), expected)


def test_statistics_of_the_whole_batch(two):
    losses, statistics = training.sync_batch_norm(0, 1)
    for of_rank, of_module in two.run(training.sync_batch_norm):
        assert of_rank == pytest.approx(losses, rel=0, abs=NEAR)
        assert of_module == pytest.approx(statistics, rel=1e-5, abs=1e-5)
    assert losses[-1] < losses[0]


def test_statistics_of_parts_of_different_sizes(three):
    three.run(training.sync_batch_norm_of_parts)


@pytest.mark.parametrize("name", [pytest.param("GPipe", marks=FURTHER), "1F1B"])
def test_a_pipeline(two, expected, name):
    check(two.run(training.pipeline, name), expected)


@FURTHER
def test_parameters_on_the_host(own, expected):
    ranks = own(2, TEST_BACKEND="cpu:gloo,openreg:occl")
    check(ranks.run(training.fsdp2_offloaded), expected)
    assert ranks.end() == [0, 0]


@FURTHER  # test_applications.py compiles more of them, with the code of kernels
def test_a_collective_in_a_compiled_function(two):
    assert two.run(training.compiled_collective) == [[3.0] * 3] * 2


def test_a_checkpoint_of_two_ranks_goes_on_in_one_process(own, expected, tmp_path):
    ranks = own(2)
    check(ranks.run(training.checkpointed, str(tmp_path)), expected)
    assert ranks.end() == [0, 0]
    check([training.resumed(0, 1, str(tmp_path))], expected[training.STEPS // 2 :])
