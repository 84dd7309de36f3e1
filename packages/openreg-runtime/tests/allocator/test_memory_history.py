# SPDX-License-Identifier: BSD-3-Clause
"""The allocator records its history, and PyTorch's viewer reads its snapshots."""

import inspect
import pickle
import threading
import time

import pytest
import torch
from torch.cuda import _memory_viz

from openreg_runtime import openreg

pytestmark = pytest.mark.usefixtures("clean_device", "no_history")

MIB = 1 << 20


@pytest.fixture
def no_history():
    openreg.empty_cache()
    yield
    openreg.memory._record_memory_history(None)


def allocate_here(size, device="openreg:0"):
    return torch.UntypedStorage(size, device=device)


def record(**options):
    openreg.memory._record_memory_history(**{"stacks": "python", **options})


def trace(device=0):
    return openreg.memory._snapshot()["device_traces"][device]


def actions(device=0):
    return [entry["action"] for entry in trace(device)]


def functions(entry):
    return [frame["name"] for frame in entry["frames"]]


@pytest.mark.covers("module.memory._record_memory_history")
def test_every_action_is_recorded_in_order():
    record()
    before = time.time_ns() // 1000
    storage = allocate_here(30 * MIB)
    address = storage.data_ptr()
    del storage
    openreg.empty_cache()
    entries = trace()
    expected = ["segment_alloc", "alloc", "free_requested", "free_completed", "segment_free", "snapshot"]
    assert [entry["action"] for entry in entries] == expected
    for entry in entries[:-1]:
        assert (entry["addr"], entry["size"], entry["stream"], entry["pool_id"]) == (address, 30 * MIB, 0, (0, 0))
    times = [entry["time_us"] for entry in entries]
    assert times == sorted(times)
    assert before - 1_000_000 < times[0] <= times[-1] <= time.time_ns() // 1000 + 1_000_000
    assert actions(1) == ["snapshot", "snapshot"]


@pytest.mark.covers("module.memory._record_memory_history")
def test_stacks_name_the_python_functions():
    record()
    storage = allocate_here(3000)
    entries = {entry["action"]: entry for entry in trace()}
    assert "allocate_here" in functions(entries["alloc"])
    (frame,) = [frame for frame in entries["alloc"]["frames"] if frame["name"] == "allocate_here"]
    assert frame["filename"] == __file__
    assert frame["line"] > 1
    (segment,) = [s for s in openreg.memory._snapshot()["segments"] if s["device"] == 0]
    used = [block for block in segment["blocks"] if block["state"] == "active_allocated"]
    assert "allocate_here" in functions(used[0])
    assert "allocate_here" in functions(segment)
    assert storage.nbytes() == used[0]["requested_size"] == 3000


@pytest.mark.parametrize(("stacks", "native"), [("all", True), ("python", False)])
def test_stacks_can_include_native_frames(stacks, native):
    record(stacks=stacks)
    storage = allocate_here(3000)
    (entry,) = [entry for entry in trace() if entry["action"] == "alloc"]
    names = functions(entry)
    assert "allocate_here" in names
    assert any("::" in name or name == "??" for name in names) == native  # "??" where nothing knows the symbol
    del storage


@pytest.mark.parametrize(
    ("context", "kept"),
    [
        (None, set()),
        ("state", {"block"}),
        ("alloc", {"block", "alloc"}),
        ("all", {"block", "alloc", "free_requested"}),
    ],
)
def test_the_context_says_for_what_stacks_are_kept(context, kept):
    record(context=context)
    kept_alive, dropped = allocate_here(3000), allocate_here(3000)

    def drop():
        nonlocal dropped
        del dropped

    drop()
    snapshot = openreg.memory._snapshot()
    found = set()
    entries = snapshot["device_traces"][0]
    found |= {"alloc" for e in entries if e["action"] == "alloc" and "allocate_here" in functions(e)}
    found |= {"free_requested" for e in entries if e["action"] == "free_requested" and "drop" in functions(e)}
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    found |= {"block" for block in blocks if "allocate_here" in functions(block)}
    assert found == kept
    assert kept_alive.nbytes() == 3000


@pytest.mark.covers("module.memory._record_memory_history", "module.memory._snapshot", "module.memory._dump_snapshot")
@pytest.mark.parametrize("name", ["_record_memory_history", "_snapshot", "_dump_snapshot"])
def test_the_parameters_are_those_of_cuda_in_their_order(name):
    ours, cudas = (inspect.signature(getattr(module, name)) for module in (openreg.memory, torch.cuda.memory))
    given = [(one.name, one.default) for one in cudas.parameters.values()]
    # The last two of _record_memory_history() came with torch 2.15.
    assert [(one.name, one.default) for one in ours.parameters.values()][: len(given)] == given


def test_options_that_nothing_here_records_are_refused(tmp_path):
    record(compile_context=False, global_record_annotations=False)
    assert openreg.memory._snapshot(device=0)["segments"] == openreg.memory._snapshot("openreg:1", False)["segments"]
    openreg.memory._dump_snapshot(tmp_path / "snapshot", augment_with_fx_traces=False)
    for option in ("compile_context", "global_record_annotations", "record_pinned_host_memory"):
        with pytest.raises(NotImplementedError, match=f"_record_memory_history: {option}=True is not supported"):
            record(**{option: True})
    with pytest.raises(NotImplementedError, match="_record_memory_history: record_cuda=False is not supported"):
        record(record_cuda=False)
    for call in (openreg.memory._snapshot, openreg.memory._dump_snapshot):
        with pytest.raises(NotImplementedError, match="augment_with_fx_traces=True is not supported"):
            call(augment_with_fx_traces=True)


def test_state_alone_keeps_no_list():
    record(enabled="state")
    storage = allocate_here(3000)
    assert actions() == []
    blocks = [block for segment in openreg.memory_snapshot() for block in segment["blocks"]]
    assert any("allocate_here" in functions(block) for block in blocks)
    assert storage.nbytes() == 3000


def test_the_list_keeps_the_newest_entries():
    record(max_entries=3)
    for size in (600, 1200, 1800):
        allocate_here(size)
    assert [(entry["action"], entry["size"]) for entry in trace()] == [
        ("free_requested", 1800),
        ("free_completed", 1800),
        ("snapshot", 0),
    ]


def test_a_list_can_go_on_or_start_anew():
    record()
    allocate_here(600)
    record()
    assert actions().count("alloc") == 1
    record(clear_history=True)
    assert actions() == ["snapshot"]
    openreg.memory._record_memory_history(None)
    allocate_here(600)
    assert actions() == []


def test_actions_can_be_left_out_and_devices_chosen():
    record(skip_actions=["free_requested", "segment_alloc", "snapshot"], device="openreg:1")
    allocate_here(600, "openreg:1")
    allocate_here(600, "openreg:0")
    assert actions(1) == ["alloc", "free_completed"]
    assert actions(0) == []


def test_a_failed_allocation_is_recorded_with_the_free_memory():
    record()
    with pytest.raises(torch.OutOfMemoryError):
        allocate_here(1 << 50)
    (entry,) = [entry for entry in trace() if entry["action"] == "oom"]
    assert entry["size"] == 1 << 50
    assert entry["device_free"] == openreg.mem_get_info()[0]
    assert "addr" not in entry


def test_a_thread_records_its_own_stack():
    record()

    def in_a_thread():
        allocate_here(3000)

    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join()
    assert any("in_a_thread" in functions(entry) for entry in trace())


def make_history():
    record()
    kept = [allocate_here(size, f"openreg:{device}") for size in (3000, 30 * MIB) for device in (0, 1)]
    allocate_here(5 * MIB)
    with openreg.stream(openreg.Stream()):
        kept.append(allocate_here(700))
    with pytest.raises(torch.OutOfMemoryError):
        allocate_here(1 << 50)
    return kept


@pytest.mark.covers("module.memory_snapshot", "module.memory._snapshot")
@pytest.mark.parametrize("view", ["segsum", "trace", "trace_plot", "segment_plot"])
def test_pytorchs_viewer_reads_a_snapshot(view):
    kept = make_history()
    text = getattr(_memory_viz, view)(openreg.memory._snapshot())
    assert {"segsum": "total_reserved", "trace": "OutOfMemoryError", "trace_plot": "<html", "segment_plot": "<html"}[
        view
    ].lower() in text.lower()
    assert len(kept) == 5


@pytest.mark.parametrize("view", ["segments", "memory"])
def test_pytorchs_viewer_lists_the_stacks_of_blocks(view):
    kept = make_history()
    lines = getattr(_memory_viz, view)(openreg.memory._snapshot(), format_flamegraph=str)
    assert "active_allocated" in lines
    assert "allocate_here" in lines
    assert len(kept) == 5


def test_pytorchs_viewer_compares_snapshots():
    before = openreg.memory._snapshot()["segments"]
    kept = allocate_here(30 * MIB)
    lines = _memory_viz.compare(before, openreg.memory._snapshot()["segments"], format_flamegraph=str)
    assert "only_after" in lines
    assert kept.nbytes() == 30 * MIB


@pytest.mark.covers("module.memory._dump_snapshot")
def test_a_snapshot_is_written_to_a_file(tmp_path):
    kept = make_history()
    openreg.memory._dump_snapshot(tmp_path / "snapshot.pickle")
    snapshot = pickle.loads((tmp_path / "snapshot.pickle").read_bytes())
    assert set(snapshot) == {"segments", "device_traces", "allocator_settings", "external_annotations"}
    assert sum(segment["allocated_size"] for segment in snapshot["segments"]) == sum(
        openreg.memory_allocated(device) for device in range(2)
    )
    assert len(kept) == 5


def test_usage_is_written_as_a_flame_graph(tmp_path, monkeypatch):
    kept = make_history()
    # The viewer fetches the script that draws; the lines are ours.
    monkeypatch.setattr(_memory_viz.segments, "__defaults__", (str,))
    monkeypatch.setattr(_memory_viz.memory, "__defaults__", (str,))
    for save in (openreg.memory._save_segment_usage, openreg.memory._save_memory_usage):
        save(tmp_path / "usage.svg")
        assert "allocate_here" in (tmp_path / "usage.svg").read_text()
    assert len(kept) == 5


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"enabled": "everything"}, "enabled .*None, 'state', 'all'.*'everything'"),
        ({"context": "some"}, "context .*None, 'state', 'alloc', 'all'.*'some'"),
        ({"stacks": "native"}, "stacks .*'python', 'all'.*'native'"),
        ({"skip_actions": ["map"]}, "skip_actions .*'alloc', .*'map'"),
        ({"max_entries": 0}, r"max_entries .*\b1\b.*\b0"),
    ],
)
def test_a_wrong_option_is_named_with_the_accepted_ones(options, reason):
    with pytest.raises(ValueError, match=reason):
        openreg.memory._record_memory_history(**options)


def test_recording_survives_threads_and_the_end_of_the_process(succeed):
    succeed(
        """
        import threading, torch, openreg_runtime
        torch.openreg.memory._record_memory_history(stacks="all", max_entries=50)
        def work():
            for _ in range(200):
                torch.UntypedStorage(3000, device="openreg")
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert len(torch.openreg.memory._snapshot()["device_traces"][0]) == 50
        kept = torch.UntypedStorage(3000, device="openreg")
        """,
        finalize=True,
    )
