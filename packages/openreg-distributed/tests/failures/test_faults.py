# SPDX-License-Identifier: BSD-3-Clause
"""After a failure every rank of the group gets an error within a known time. Its text names the call and the cause."""

import re
import signal
import socket

import faults
import pytest
import torch
from _platform import HAS_FORK
from ranks import RankFailedError, kept_port

SAID = r"all_reduce number 2 \(float32 \[4, 2\], 32 bytes, SUM\) on rank 0 of 2 in the group 'default_pg'"


def test_a_call_without_answer_fails_within_its_timeout(own):
    ranks = own(2)
    told, _ = ranks.run(faults.a_call_without_answer)
    assert told["synchronize"][0] == "AcceleratorError"  # and not the call, nor its wait(): they do not block the host
    assert re.search(SAID + ".*within its timeout of 2000 ms", told["synchronize"][1]), told
    assert told["after"] >= 2
    assert told["wait"][0] == "DistBackendError"
    assert re.search(SAID, told["wait"][1])
    assert told["success"] == (True, False)
    assert told["next"][0] == "DistBackendError"
    assert re.search("the group has failed: " + SAID + ".*destroy_process_group", told["next"][1])
    assert told["device"] == [2] * 4
    assert ranks.end() == [0, 0]


def test_a_wait_may_have_a_limit_of_its_own(own):
    told, _ = own(2).run(faults.a_wait_with_a_limit)
    assert told["wait"][0] == "DistBackendError"
    assert "within its timeout of 300 ms" in told["wait"][1]
    assert told["after"] >= 0.3


def test_a_message_that_is_never_sent(own):
    ranks = own(2)
    (kind, text), _ = ranks.run(faults.a_receive_without_send)
    assert kind == "AcceleratorError"
    assert re.search(r"recv number 2 \(float32 \[4\], 16 bytes\) with rank 1 on rank 0 of 2", text)
    assert ranks.end() == [0, 0]


@pytest.mark.parametrize("how", ["killed", pytest.param("ended", marks=pytest.mark.endurance)])
def test_a_peer_that_is_gone_is_known_before_the_timeout(own, how):
    ranks = own(3)
    ranks.begin(faults.a_peer_dies, how)
    with pytest.raises(RankFailedError, match="rank 2 has ended with"):
        ranks.answer(2)
    for rank in (0, 1):
        told = ranks.answer(rank)
        kind, text = told["error"]
        assert kind in ("AcceleratorError", "DistBackendError")
        # If another rank has reported the failure before the call is made, the call has no number.
        assert re.search(rf"all_reduce (number 2 \(float32 \[4\], 16 bytes, SUM\) )?on rank {rank} of 3", text)
        assert "rank 2 has ended, or closed its connections" in text
        assert "timeout" not in text


def test_after_an_abort_the_group_is_gone_and_the_device_is_not(own):
    ranks = own(2)
    told, _ = ranks.run(faults.an_abort)
    assert told["wait"][0] == "DistBackendError"
    assert "rank 0 of 2 in the group 'default_pg': the group was aborted" in told["wait"][1]
    assert told["device"] == [2] * 4
    assert "aborted" in told["next"][1]
    assert ranks.end() == [0, 0]


@pytest.mark.parametrize("call", [faults.another_call, faults.another_size], ids=["call", "size"])
def test_ranks_that_call_different_things_get_a_detailed_error(own, call):
    for kind, text in own(2, TORCH_DISTRIBUTED_DEBUG="DETAIL").run(call):
        assert kind == "RuntimeError"
        assert "mismatch" in text.lower()


def test_a_process_ends_with_calls_under_way(own):
    ranks = own(2)
    ranks.run(faults.exits_at_work)
    assert ranks.end() == [0, 0]


@pytest.mark.parametrize(
    "under_way",
    ["calls", *(pytest.param(what, marks=pytest.mark.endurance) for what in ("nothing", "a kernel"))],
)
def test_a_process_exits_with_its_group(own, under_way):
    ranks = own(2)
    ranks.begin(faults.exits_with_the_group, under_way)
    for rank in range(2):
        with pytest.raises(RankFailedError, match=f"rank {rank} has ended with 0"):
            ranks.answer(rank)


@pytest.mark.skipif(not HAS_FORK, reason="Windows has no fork()")
def test_a_forked_child_exits_with_the_group_of_its_parent(own):
    ranks = own(2)
    assert ranks.run(faults.a_child_exits_with_the_group) == [0, 0]
    assert ranks.end() == [0, 0]


def test_work_that_failed_before_is_named(own):
    ranks = own(2)
    (kind, text), (_, of_the_other) = ranks.run(faults.a_failing_kernel_before)
    assert kind == "AcceleratorError"
    assert "index 99" in text
    # If the device is reset before the group looks, the device knows only that work before the call was skipped.
    assert re.search("rank 0 has failed: all_reduce .*(index 99|skipped)", of_the_other)
    assert ranks.end() == [0, 0]


BAD_INPUT = {
    "cpu": ("RuntimeError", r"all_reduce on rank . of 2 .*: a tensor is on cpu; move it"),
    "devices": ("RuntimeError", r"all_gather on rank . of 2 .*: tensors are on openreg:. and on openreg:.;"),
    "dtypes": ("TypeError", r"reduce_scatter_tensor on rank . of 2 .* of dtype Float and of Int; all of one call"),
    "sizes": ("ValueError", r"all_gather_into_tensor on rank . of 2 .* 7 elements and the input 4; .* 2 times"),
    "parts": ("ValueError", r"all_to_all_single on rank . of 2 .* parts of the output are \[1, 2\]; give 2 sizes"),
    "rows": ("ValueError", r"all_to_all_single on rank . of 2 .* 3 rows, which do not divide by 2 ranks"),
    "nothing": ("ValueError", r"all_gather_coalesced on rank . of 2 .*: got no tensors; give at least one"),
    "peer": ("ValueError", r"send on rank . of 2 .*: rank 7 is not in the group; give one from 0 to 1"),
    "operation": ("TypeError", r"all_reduce on rank . of 2 .*: ReduceOp.BAND is for integers and bool, not for Float"),
    "complex": ("ValueError", r"all_reduce does not support"),
    "captured": ("RuntimeError", r"all_reduce on rank . of 2 .*: this call cannot be captured in a graph of openreg:."),
}


def test_bad_input_is_refused_on_the_calling_line(own):
    ranks = own(2)
    for told in ranks.run(faults.bad_input):
        for what, (kind, text) in BAD_INPUT.items():
            assert told[what][0] == kind, (what, told[what])
            assert re.search(text, told[what][1]), (what, told[what])
        assert told["sparse"][0] != ""
    assert ranks.end() == [0, 0]


def test_a_group_that_was_made_for_a_device_takes_no_tensor_of_another(own):
    for kind, text in own(2, TEST_DEVICE_ID="1").run(faults.wrong_device):
        assert kind == "RuntimeError"
        assert re.search(r"a tensor is on openreg:., but the group was made for openreg:.", text)


def test_a_world_that_is_never_complete(own):
    with kept_port() as port:
        told = own(2, with_group=False).run(faults.never_complete, port)
    for kind, _text in told:
        assert kind in ("DistStoreError", "DistBackendError", "DistNetworkError")


def test_a_port_that_is_taken(own):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ((kind, text),) = own(1, with_group=False).run(faults.never_complete, taken.getsockname()[1])
    assert kind == "DistNetworkError"
    assert "in use" in text


def test_a_store_that_does_not_answer(own):
    ((kind, text), _) = own(2, with_group=False).run(faults.lost_store)
    assert kind == "DistBackendError"
    assert re.search("occl: rank 0 could not connect with the other 1 ranks within 0:00:01: .*start all ranks", text)


def test_a_store_that_is_gone(own):
    ranks = own(2, with_group=False)
    with kept_port() as port:
        ranks.begin(faults.store_that_ends, port)
        with pytest.raises(RankFailedError, match="rank 0 has ended"):
            ranks.answer(0)
    kind, text = ranks.answer(1)
    assert kind == "DistBackendError"
    assert re.search("occl: rank 1 could not connect with the other 1 ranks .*start all ranks", text)


def test_a_call_that_is_dropped_is_missed_by_all(own):
    ranks = own(2)
    others, its = ranks.run(faults.injected, "drop:3", 5, 2.0)
    assert others["sums"] == its["sums"] == [2.0, 2.0]
    # Whichever rank's time is up first: the timeouts of both begin at about the same time.
    assert "its messages were lost, by an injected fault" in its["error"][1]
    for rank, told in enumerate((others, its)):
        assert re.search(
            rf"all_reduce (number 4 .*)?on rank {rank} of 2 .*within its timeout of 2000 ms", told["error"][1]
        )
    assert ranks.end() == [0, 0]


def test_a_call_that_is_delayed_begins_a_second_late(own):
    ranks = own(2)
    for told in ranks.run(faults.injected, "delay:2", 3):
        assert told["sums"] == [2.0] * 3
        assert told["error"][0] == ""
        assert told["after"] >= 1
    assert ranks.end() == [0, 0]


def test_a_delay_may_be_longer_than_the_timeout(own):
    ranks = own(2)
    for told in ranks.run(faults.injected, "delay:2", 3, 0.3):
        assert told["sums"] == [2.0]
        assert "within its timeout of 300 ms" in told["error"][1]
    assert ranks.end() == [0, 0]


def test_a_rank_is_killed_at_a_call(own):
    ranks = own(2)
    ranks.begin(faults.injected, "kill:2", 3)
    with pytest.raises(RankFailedError, match=f"rank 1 has ended with {-signal.SIGKILL}"):
        ranks.answer(1)
    told = ranks.answer(0)
    assert told["sums"] == [2.0]
    assert "rank 1 has ended, or closed its connections" in told["error"][1]


def test_the_environment_orders_a_fault_for_one_device(own):
    ranks = own(2, OPENREG_FAULTS="drop:1@1")
    told = ranks.run(faults.ordered_by_the_environment)
    for result, (kind, text) in told:
        assert result == [2] * 4
        assert kind in ("AcceleratorError", "DistBackendError")
        assert "within its timeout of 1000 ms" in text
    assert any("its messages were lost, by an injected fault" in text for _, (_, text) in told)
    assert ranks.end() == [0, 0]


def test_a_kind_of_fault_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"KIND one of .*delay, drop, kill"), torch.openreg.inject_faults("loose:1"):
        pass
