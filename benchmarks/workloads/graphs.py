# SPDX-License-Identifier: BSD-3-Clause
"""Replays a step as a device graph, with one launch."""

import torch

from workloads.workload import Call


class Replay:
    """A callable that replays a graph of a step. Keeps the step, because the graph uses the memory of its tensors."""

    def __init__(self, step: Call, device: torch.device) -> None:
        self.step = step
        self.stream = torch.Stream(device)
        self.stream.wait_stream(torch.accelerator.current_stream(device))
        with self.stream:
            for _ in range(3):
                step()
        torch.accelerator.synchronize()
        self.graph = torch.accelerator.Graph()
        with self.stream, self.graph:
            step()

    def __call__(self) -> None:
        """Enqueues a replay."""
        with self.stream:
            self.graph.replay()


def replayed(step: Call, device: torch.device) -> Call:
    """Returns a replay of the step; on the CPU, which has no graphs, the step itself."""
    return step if device.type == "cpu" else Replay(step, device)
