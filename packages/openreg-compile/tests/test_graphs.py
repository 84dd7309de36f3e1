# SPDX-License-Identifier: BSD-3-Clause
"""With mode="reduce-overhead", replayed calls give the function's results, also if inputs move or results are kept."""

import copy

import pytest
import torch

from openreg_compile import graphs

DEVICE = "openreg"

pytestmark = pytest.mark.filterwarnings("ignore:::torch")


@pytest.fixture
def recordings(monkeypatch):
    """Those that are made while the test runs."""
    torch._dynamo.reset()
    made = []

    class Noted(graphs._Recording):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.replays = 0
            made.append(self)

        def replay(self, inputs):
            self.replays += 1
            return super().replay(inputs)

    monkeypatch.setattr(graphs, "_Recording", Noted)
    return made


def compiled(function, **options):
    return torch.compile(function, mode="reduce-overhead", **options)


def line(x, w):
    return (x * w + 1).relu()


def test_inputs_at_the_same_place_are_not_copied(recordings):
    function, x, w = compiled(line), torch.randn(6, device=DEVICE), torch.randn(6, device=DEVICE)
    for step in range(6):
        x.fill_(step)
        y = function(x, w)
        torch.testing.assert_close(y, line(x, w))
        del y
    (recording,) = recordings
    assert (recording.replays, len(recording._copied)) == (5, 0)


def test_only_inputs_that_move_are_copied(recordings):
    function, w, kept = compiled(line), torch.randn(6, device=DEVICE), []
    for step in range(6):
        kept.append(torch.full((6,), float(step), device=DEVICE))
        torch.testing.assert_close(function(kept[-1], w), line(kept[-1], w))
    assert list(recordings[-1]._copied) in ([0], [1])
    assert recordings[-1].replays >= 4


LAYOUTS = {
    "every second column": lambda x: x.view(2, 6)[:, ::2],
    "one row, expanded": lambda x: x[:3].expand(4, 3),
    "windows that overlap": lambda x: x.as_strided((4, 3), (1, 1)),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_inputs_that_move_keep_their_strides(recordings, layout):
    function, kept = compiled(lambda x: x * 2), []
    for step in range(6):
        kept.append(torch.arange(12.0, device=DEVICE) + step)
        x = layout(kept[-1])
        torch.testing.assert_close(function(x), x * 2)
    assert list(recordings[-1]._copied) == [0]
    assert recordings[-1].replays >= 4


def test_a_capture_that_ends_with_an_assertion_is_not_the_callers(recordings):
    def call(inputs):
        assert not torch.openreg.is_current_stream_capturing()
        return [inputs[0] + 1]

    function = graphs.graphify(call, 0, [])
    x = torch.ones(3, device=DEVICE)
    for _ in range(3):
        assert function([x])[0].tolist() == [2.0] * 3
    assert recordings == []


def test_a_capture_without_enough_memory_is_tried_again(recordings):
    is_full = True

    def call(inputs):
        if is_full and torch.openreg.is_current_stream_capturing():
            raise torch.OutOfMemoryError("no memory is free")
        return [inputs[0] + 1]

    function = graphs.graphify(call, 0, [])
    x = torch.ones(3, device=DEVICE)
    for _ in range(3):
        assert function([x])[0].tolist() == [2.0] * 3
    assert recordings == []
    is_full = False
    assert function([x])[0].tolist() == [2.0] * 3
    assert len(recordings) == 1


def test_results_that_are_kept_stay_as_they_are(recordings):
    function, w = compiled(line), torch.ones(6, device=DEVICE)
    inputs = [torch.full((6,), float(step), device=DEVICE) for step in range(2 * graphs._MOST_RECORDINGS)]
    kept = [function(x, w) for x in inputs]
    views = [function(x, w)[2:4] for x in inputs]  # a view keeps the storage, not the tensor
    for x, y, view in zip(inputs, kept, views, strict=True):
        torch.testing.assert_close(y, line(x, w))
        torch.testing.assert_close(view, line(x, w)[2:4])
    assert len(recordings) <= graphs._MOST_RECORDINGS


def test_results_that_are_inputs_or_views_of_them_are_the_callers(recordings):
    def views(x):
        return x.view(2, 3), x.t() if x.dim() == 2 else x[1:], x + 1

    function = compiled(views)
    for step in range(5):
        x = torch.full((6,), float(step), device=DEVICE)
        whole, part, more = function(x)
        x.add_(10)
        assert whole.flatten().tolist() == [step + 10.0] * 6
        assert part.tolist() == [step + 10.0] * 5
        assert more.tolist() == [step + 1.0] * 6


def test_results_that_are_views_of_a_part_of_a_storage_are_of_that_part(recordings):
    function = compiled(lambda x: (x.view(x.size(0) // 2, 2), x + 1), dynamic=True)
    for row in torch.arange(24.0, device=DEVICE).view(6, 4):
        view, more = function(row)
        assert view.data_ptr() == row.data_ptr()
        torch.testing.assert_close(view, row.view(2, 2))
        torch.testing.assert_close(more, row + 1)
        del more  # the next call can replay
    assert recordings[-1].replays >= 4


def test_results_that_are_views_of_another_dtype_keep_it(recordings):
    def call(inputs):  # as a generated module returns what it saves for the backward pass
        return [inputs[0].view(torch.float32)[1:], inputs[0] + 1]

    function = graphs.graphify(call, 0, [])
    for row in torch.arange(8.0, device=DEVICE, dtype=torch.float64).view(4, 2):
        view = function([row])[0]
        torch.testing.assert_close(view, row.view(torch.float32)[1:])
    assert recordings[-1].replays >= 2


def test_an_input_that_is_written_to_is_the_callers(recordings):
    def add(x, y):
        x.add_(y)
        return x * 2

    function = compiled(add)
    state = torch.zeros(4, device=DEVICE)
    for step in range(1, 6):
        y = function(state, torch.ones(4, device=DEVICE))
        assert state.tolist() == [step] * 4
        assert y.tolist() == [2.0 * step] * 4
    others = [torch.full((4,), float(number), device=DEVICE) for number in range(4)]
    for number, other in enumerate(others):
        function(other, torch.ones(4, device=DEVICE))
        assert other.tolist() == [number + 1.0] * 4


def test_an_input_that_is_written_to_may_move_for_one_call(recordings):
    def add(x, y):
        x.add_(y)
        return x * 2

    function, state, y = compiled(add), torch.zeros(4, device=DEVICE), torch.ones(4, device=DEVICE)
    for _ in range(2):
        function(state, y)
    function(torch.zeros(4, device=DEVICE), y)
    before = sum(recording.replays for recording in recordings)
    function(state, y)
    assert state.tolist() == [3.0] * 4
    assert sum(recording.replays for recording in recordings) == before + 1


def test_inputs_that_overlap_are_one_memory(recordings):
    def add(x, y):
        x.add_(1)
        return y * 2

    function = compiled(add)
    for _ in range(4):
        ours, theirs = (torch.arange(8.0, device=DEVICE) for _ in range(2))
        torch.testing.assert_close(function(ours[:4], ours[2:6]), add(theirs[:4], theirs[2:6]))
        torch.testing.assert_close(ours, theirs)


def test_training_is_that_of_the_plain_model(recordings):
    torch.manual_seed(0)
    plain = torch.nn.Sequential(
        torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.GELU(), torch.nn.Linear(8, 2)
    ).to(DEVICE)
    model = copy.deepcopy(plain)
    function = compiled(model)
    pairs = [(one, torch.optim.SGD(one.parameters(), lr=0.1)) for one in (plain, model)]
    for _ in range(6):
        x = torch.randn(5, 6, device=DEVICE)
        for (_, optimizer), call in zip(pairs, (plain, function), strict=True):
            optimizer.zero_grad()
            call(x).square().mean().backward()
            optimizer.step()
    for ours, theirs in zip(model.state_dict().values(), plain.state_dict().values(), strict=True):
        torch.testing.assert_close(ours, theirs)
    assert sum(recording.replays for recording in recordings) >= 6


def test_random_numbers_are_new_with_each_replay(recordings):
    function = compiled(lambda x: torch.nn.functional.dropout(x, 0.5) + torch.rand_like(x))
    x = torch.ones(100, device=DEVICE)
    results = [function(x).cpu() for _ in range(5)]
    assert len({tuple(result.tolist()) for result in results}) == 5
    assert recordings


@pytest.mark.parametrize("dynamic", [None, True])
def test_other_sizes_are_other_recordings(recordings, dynamic):
    function = compiled(line, dynamic=dynamic)
    for _ in range(3):
        for size in (4, 7):
            x = torch.randn(size, device=DEVICE)
            torch.testing.assert_close(function(x, x), line(x, x))


def test_several_compiled_functions_feed_each_other(recordings):
    first, second = compiled(line), compiled(lambda x: (x - 1).exp())
    for step in range(5):
        x = torch.full((4,), float(step), device=DEVICE)
        torch.testing.assert_close(second(first(x, x)), (line(x, x) - 1).exp())


def test_what_cannot_be_recorded_runs(recordings):
    function = compiled(lambda x, number: x * number + 1)
    for step in range(4):  # a number on the host would be the same in each replay
        y = function(torch.ones(3, device=DEVICE), torch.tensor(float(step)))
        assert y.tolist() == [step + 1.0] * 3
    assert recordings == []


def test_in_a_capture_of_the_user_it_is_recorded_there(recordings):
    function, x = compiled(line), torch.ones(4, device=DEVICE)
    for _ in range(3):
        function(x, x)
    before = [recording.replays for recording in recordings]
    graph = torch.openreg.Graph()
    with torch.openreg.graph(graph):
        y = function(x, x)
    x.fill_(3.0)
    graph.replay()
    assert y.tolist() == [10.0] * 4
    assert [recording.replays for recording in recordings] == before


def test_in_a_capture_of_another_device_than_the_current_one_it_is_recorded_there(recordings):
    calls = []

    def call(inputs):
        calls.append(len(inputs))
        return [inputs[0] + 1]

    function, x = graphs.graphify(call, 1, []), torch.ones(4, device=f"{DEVICE}:1")
    stream = torch.openreg.Stream(1)
    with torch.openreg.stream(stream):
        for _ in range(2):
            function([x])
    before = len(calls)
    with torch.openreg.graph(torch.openreg.Graph(), stream=stream), torch.openreg.device(0):
        function([x])
    assert len(calls) == before + 1
    assert [recording.replays for recording in recordings] == [1]
