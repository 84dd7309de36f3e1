# SPDX-License-Identifier: BSD-3-Clause
"""The place of the missing line: where the program has a name for the stream or the tensor of the line.

Each program is a library and its user: the access is in other functions than the streams. The line where the missing
line belongs ends with the comment "place".
"""

import functools
import inspect
import linecache
import threading

import pytest
import torch

STREAMS = []


def ones():
    return torch.ones(1024, device="openreg")


def current():
    return torch.openreg.current_stream()


def double(x):
    return x * 2


class Forked:
    """Runs a function of its user on a stream of its own, which does not wait for the input."""

    def __init__(self, function):
        self.function = function
        self.side = torch.openreg.Stream()

    def run(self, x):
        with torch.openreg.stream(self.side):
            y = self.function(x)  # place
        current().wait_stream(self.side)
        return y


def a_stream_does_not_wait_for_the_input():
    return Forked(double).run(ones())


class Joined:
    """Updates a tensor on a stream of its own, for which nothing waits."""

    def __init__(self):
        self.side = None
        self.value = ones()

    def on_side_stream(self):
        if self.side is None:
            self.side = torch.Stream("openreg")
        self.side.wait_stream(current())
        return self.side

    @torch.no_grad()
    def update(self):
        with torch.no_grad(), self.on_side_stream():
            self.add()
            self.add()  # place

    def add(self):
        self.value.add_(1)


def the_user_reads_a_result_too_early():
    joined = Joined()
    joined.update()
    return joined.value.sum()


def made(x):
    """Returns a tensor that a stream writes that only this function knows."""
    side = torch.openreg.Stream()
    side.wait_stream(current())
    with torch.openreg.stream(side):
        x.mul_(2)  # place
    return x


def the_stream_of_a_function_that_has_ended():
    return made(ones()).sum()


def entered(x):
    side = torch.Stream("openreg")
    side.wait_stream(current())
    with threading.Lock(), side:
        x.mul_(2)  # place
    return x


def a_stream_that_is_its_own_context():
    return entered(ones()).sum()


@functools.cache
def side_stream():
    return torch.Stream("openreg")


def entered_by_a_helper(x):
    stream = side_stream()
    stream.wait_stream(current())
    with stream:
        x.mul_(2)  # place
    return x


def a_stream_that_a_function_returns():
    return entered_by_a_helper(ones()).sum()


def weighted(results):
    weight = ones()
    stream = side_stream()
    stream.wait_stream(current())
    with stream:
        results.append(double(weight))  # place


def a_tensor_of_an_ended_function_is_freed_in_use():
    results = []
    weighted(results)
    weighted(results)
    current().wait_stream(side_stream())
    return results


def doubled(weight):
    stream = side_stream()
    stream.wait_stream(current())
    with stream:
        return double(weight)  # place


def argument():
    weight = ones()
    return doubled(weight)


def no_line_can_follow_a_return():
    results = [argument(), argument()]
    current().wait_stream(side_stream())
    return results


class Snapshots:
    """Copies tensors on the current stream and reads the copies on another one."""

    def __init__(self):
        self.side = torch.openreg.Stream()

    def run(self, tensors):
        totals = [ones() for _ in tensors]
        torch.openreg.synchronize()
        for tensor, total in zip(tensors, totals, strict=True):
            snapshot = tensor.clone()
            self.side.wait_stream(current())
            with torch.openreg.stream(self.side):
                accumulate(total, snapshot)  # place
        current().wait_stream(self.side)


def accumulate(total, source):
    total.add_(source)


def a_copy_is_freed_while_a_helper_reads_it():
    Snapshots().run([ones(), ones(), ones()])


class Loader:
    """Yields tensors that belong to a stream of its own, and keeps no reference."""

    def __init__(self):
        self.side = torch.openreg.Stream()

    def __iter__(self):
        for _ in range(3):
            with torch.openreg.stream(self.side):
                batch = ones()  # place
            current().wait_stream(self.side)
            yield batch
            del batch


def a_batch_is_freed_while_its_user_reads_it():
    total = torch.zeros((), device="openreg")
    torch.openreg.synchronize()
    for item in Loader():
        total += item.sum()
        del item


class Offloaded:
    """Copies a tensor to the host on a stream of its own."""

    def __init__(self, x):
        side = torch.openreg.Stream()
        side.wait_stream(current())
        with torch.openreg.stream(side):
            self.host = x.to("cpu", non_blocking=True)  # place


def the_host_reads_a_copy_of_an_ended_function():
    x = ones()
    offloaded = Offloaded(x)
    total = offloaded.host.sum()
    torch.openreg.synchronize()
    return total


CASES = {
    a_stream_does_not_wait_for_the_input: "before self.side.wait_stream(torch.openreg.default_stream())",
    the_user_reads_a_result_too_early: "after torch.openreg.current_stream().wait_stream(self.side)",
    the_stream_of_a_function_that_has_ended: "after torch.openreg.current_stream().wait_stream(side)",
    a_stream_that_is_its_own_context: "after torch.openreg.current_stream().wait_stream(side)",
    a_stream_that_a_function_returns: "after torch.openreg.current_stream().wait_stream(stream)",
    a_tensor_of_an_ended_function_is_freed_in_use: "after weight.record_stream(stream)",
    no_line_can_follow_a_return: "before weight.record_stream(stream)",
    a_copy_is_freed_while_a_helper_reads_it: "after snapshot.record_stream(self.side)",
    a_batch_is_freed_while_its_user_reads_it: "after batch.record_stream(torch.openreg.default_stream())",
    the_host_reads_a_copy_of_an_ended_function: "after side.synchronize()",
}
HOLDERS = {
    a_stream_does_not_wait_for_the_input: Forked,
    the_user_reads_a_result_too_early: Joined,
    the_stream_of_a_function_that_has_ended: made,
    a_stream_that_is_its_own_context: entered,
    a_stream_that_a_function_returns: entered_by_a_helper,
    a_tensor_of_an_ended_function_is_freed_in_use: weighted,
    no_line_can_follow_a_return: doubled,
    a_copy_is_freed_while_a_helper_reads_it: Snapshots,
    a_batch_is_freed_while_its_user_reads_it: Loader,
    the_host_reads_a_copy_of_an_ended_function: Offloaded,
}


def findings(program):
    with torch.openreg.sanitizer("collect") as session:
        program()
    return session.findings


def places(holder):
    lines, start = inspect.getsourcelines(holder)
    return [number for number, line in enumerate(lines, start) if line.rstrip().endswith("# place")]


@pytest.mark.parametrize("program", CASES, ids=lambda program: program.__name__)
def test_the_line_belongs_where_its_names_exist(program):
    found = {(item.where.partition(" ")[0] + " " + item.missing, item.place.line) for item in findings(program)}
    (line,) = places(HOLDERS[program])
    assert found == {(CASES[program], line)}


def test_the_end_of_a_block_is_named_with_its_begin():
    (finding,) = findings(the_user_reads_a_result_too_early)
    assert finding.where == f"after {finding.place}, the end of the `with` of line {finding.place.line - 2}"
    assert "on stream Joined.side of openreg:0" not in finding.missing


def two_streams():
    """Both streams are unknown to each other; the result of one is an input of the other."""
    joined = Joined()
    joined.update()
    return Forked(double).run(joined.value)


def test_two_streams_that_do_not_know_each_other_meet_on_the_default_stream():
    (finding,) = findings(two_streams)
    assert finding.missing == "self.side.wait_stream(torch.openreg.default_stream())"
    assert finding.place.function == "run"
    assert "torch.openreg.current_stream().wait_stream(self.side), after " in finding.hint


def hidden(x):
    STREAMS[0].wait_stream(current())
    previous = current()
    torch.openreg.set_stream(STREAMS[0])
    try:
        x.mul_(2)
    finally:
        torch.openreg.set_stream(previous)
    return x


def test_a_stream_without_a_name_is_described():
    STREAMS[:] = [torch.openreg.Stream()]
    number = STREAMS[0].stream_id
    (finding,) = findings(lambda: hidden(ones()).sum())
    described = f"<stream {number:#x} of openreg:0>"
    assert finding.missing == f"torch.openreg.current_stream().wait_stream({described})"
    assert finding.place == finding.second.frame


class Watched:
    """A proxy: its class computes its attributes."""

    @property
    def __dict__(self):
        raise RuntimeError("looked at")


def test_no_dictionary_is_computed():
    proxy = Watched()
    (finding,) = findings(the_stream_of_a_function_that_has_ended)
    assert finding.place.function == "made"
    del proxy


def test_a_wait_does_not_follow_a_return():
    (race,) = (finding for finding in findings(lambda: doubled(ones()).sum()) if finding.kind == "race")
    assert race.where.startswith("before ")


@pytest.mark.parametrize(
    ("words", "module"),
    [
        ("torch.accelerator", "torch.accelerator"),
        ("torch.accelerator torch.openreg", "torch.openreg"),
        ("", "torch.openreg"),
    ],
)
def test_the_current_stream_is_named_by_the_module_that_the_file_uses(words, module):
    file = f"<a file with {words}>"
    lines = [f"# {words}\n", "def run(x, side):\n", "    with side:\n", "        x.mul_(2)\n", "    return x.sum()\n"]
    linecache.cache[file] = (0, None, lines, file)
    names = {}
    exec(compile("".join(lines), file, "exec"), names)
    x, side = ones(), torch.Stream("openreg")
    side.wait_stream(current())
    (finding,) = findings(lambda: names["run"](x, side))
    assert finding.missing.startswith(f"{module}.current_stream().wait_stream(")
