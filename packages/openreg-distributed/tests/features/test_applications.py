# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's features on top of a process group work, except for training, which test_training.py covers."""

import applications
import pytest
from torch import distributed

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:torch")  # of what PyTorch deprecates in itself

FURTHER = pytest.mark.endurance  # further forms of what the default session runs, each in processes of its own
ON_TWO = [
    applications.hooks,
    applications.accumulated,
    pytest.param(applications.uneven, marks=FURTHER),
    applications.differentiable,
    applications.attention_of_parts,
    applications.random_numbers,
    applications.state_from_one_rank,
    applications.objects_of_the_device,
]
SCHEDULES = [
    "ScheduleInterleaved1F1B",
    pytest.param("ScheduleLoopedBFS", marks=FURTHER),
    pytest.param("ScheduleInterleavedZeroBubble", marks=FURTHER),
    pytest.param("ScheduleZBVZeroBubble", marks=FURTHER),
]


@pytest.mark.covers("registration.register_sharding of attention")
@pytest.mark.parametrize("what", ON_TWO, ids=lambda what: what.__name__)
def test_two_ranks(two, what):
    two.run(what)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_pipeline_with_several_stages_on_a_rank(two, name):
    two.run(applications.schedules, name)


@pytest.mark.covers("registration.custom_ops of context_parallel")
@pytest.mark.parametrize("is_causal", [True, False])
def test_attention_over_parts_of_a_sequence(two, is_causal):
    two.run(applications.contexts, is_causal)


@pytest.mark.covers("registration.custom_ops of context_parallel")
def test_attention_over_parts_of_a_sequence_takes_no_mask(two):
    for kind, text in two.run(applications.masked_context):
        assert kind == "NotImplementedError"
        assert "context parallel attention takes no mask; use is_causal" in text


def test_what_pytorch_refuses_by_name_has_a_way_out(two):
    for told in two.run(applications.refusals):
        # A build with NCCL accepts the hook for every group.
        assert ("bf16 hook" in told) != distributed.is_nccl_available()
        assert told.get("bf16 hook", ("TypeError", ""))[0] == "TypeError"
        assert told["monitored barrier"][0] == "ValueError"


@pytest.mark.covers("registration.c10d::TimerRegistry")
def test_data_parallel_steps_are_timed_on_the_device(two):
    for times in two.run(applications.step_times):
        for part in ("forward_compute", "backward_compute", "backward_comm"):
            assert times[f"avg_{part}_time"] > 0, times


def test_collectives_in_a_compiled_function(two):
    two.run(applications.compiled_collectives)


@pytest.mark.parametrize("kind", ["ddp", pytest.param("fsdp2", marks=FURTHER), pytest.param("tensor", marks=FURTHER)])
def test_a_compiled_model(two, kind):
    two.run(applications.compiled_model, kind)


@pytest.mark.parametrize("settings", [{}, {"TEST_DEVICE_ID": "1"}], ids=["plain", "with a device"])
def test_meshes(own, settings):
    ranks = own(4, **settings)
    ranks.run(applications.meshes)
    assert ranks.end() == [0] * 4


def test_a_group_without_a_name(own):
    ranks = own(2, TEST_BACKEND="")
    for kind, text in ranks.run(applications.unnamed):
        if distributed.is_nccl_available():  # such builds of PyTorch choose another default
            assert (kind, text) == ("", "")
        else:
            assert kind == "RuntimeError"
            assert "Could not find backend type" in text
    assert ranks.end() == [0, 0]


def test_a_group_that_is_named_by_its_device(own):
    ranks = own(2, TEST_BACKEND="", TEST_DEVICE_ID="1")
    assert ranks.run(applications.named_by_the_device) == ["occl", "occl"]
    assert ranks.end() == [0, 0]
