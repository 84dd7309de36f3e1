# SPDX-License-Identifier: BSD-3-Clause
"""Planted bugs with graphs: inputs that are gone, and replays without an order."""

import torch
from planted import bug

SIZE = 1024


def ones():
    return torch.ones(SIZE, device="openreg")


def current():
    return torch.openreg.current_stream()


@bug("graph-input", report="pytorch/pytorch#167885")
def an_input_of_a_graph_was_freed(fixed):
    graph = torch.openreg.Graph()
    x, y = ones(), ones()
    with torch.openreg.graph(graph):
        torch.mul(x, 2, out=y)  # second
    if not fixed:
        del x
    graph.replay()
    torch.openreg.synchronize()
    return y


@bug("graph-input", report="pytorch/pytorch#167885")
def the_memory_of_an_input_has_another_tensor(fixed):
    graph = torch.openreg.Graph()
    x, y = ones(), ones()
    with torch.openreg.graph(graph):
        torch.mul(x, 2, out=y)  # second
    if not fixed:
        del x
    z = ones()
    graph.replay()
    torch.openreg.synchronize()
    return y, z


@bug("race", "side.wait_stream(torch.openreg.default_stream())")
def a_graph_is_replayed_before_its_input_is_there(fixed):
    graph = torch.openreg.Graph()
    side = torch.openreg.Stream()
    x, y = ones(), ones()
    with torch.openreg.graph(graph):
        torch.mul(x, 2, out=y)  # second
    torch.openreg.synchronize()
    x.fill_(3)  # first
    if fixed:
        side.wait_stream(current())
    with torch.openreg.stream(side):
        graph.replay()
    torch.openreg.synchronize()
    return y


@bug("race", "wait_stream(side)")
def the_output_of_a_graph_is_read_too_early(fixed):
    graph = torch.openreg.Graph()
    side = torch.openreg.Stream()
    x, y = ones(), ones()
    with torch.openreg.graph(graph):
        torch.mul(x, 2, out=y)  # first
    torch.openreg.synchronize()
    with torch.openreg.stream(side):
        graph.replay()
    if fixed:
        current().wait_stream(side)
    z = y + 1  # second
    torch.openreg.synchronize()
    return z


@bug("race", "wait_stream")
def two_branches_of_a_graph_write_the_same_tensor(fixed):
    graph = torch.openreg.Graph()
    side = torch.openreg.Stream()
    x = ones()
    with torch.openreg.graph(graph):
        main = current()
        side.wait_stream(main)
        with torch.openreg.stream(side):
            x.mul_(2)  # first, place
        if fixed:
            main.wait_stream(side)
        x.add_(1)  # second
        main.wait_stream(side)
    graph.replay()
    torch.openreg.synchronize()
    return x
