# SPDX-License-Identifier: BSD-3-Clause
"""Workloads with events, several streams, and several devices.

The CPU has none of them, and computes the same in order.
"""

import torch

from workloads.models import mlp
from workloads.workload import Call, Workload


def event_record(device: torch.device) -> Call:
    """Prepares the record of an event on the current stream."""
    event = torch.Event(device)
    return lambda: event.record()


def event_wait(device: torch.device) -> Call:
    """Prepares the record of an event on one stream, for which another stream waits."""
    event, other = torch.Event(device), torch.Stream(device)
    current = torch.accelerator.current_stream(device)

    def record_and_wait() -> None:
        event.record(current)
        other.wait_event(event)

    return record_and_wait


@torch.inference_mode()
def two_streams(device: torch.device) -> Call:
    """Prepares the MLP's forward pass on two batches, each on a stream of its own."""
    task = mlp(device)
    batches = (task.batch, task.batch.clone())
    if device.type == "cpu":
        streams = (None, None)
    else:
        streams = (torch.Stream(device), torch.Stream(device))
        torch.accelerator.synchronize()

    @torch.inference_mode()
    def forward() -> None:
        for stream, batch in zip(streams, batches, strict=True):
            if stream is None:
                task.model(batch)
            else:
                with stream:
                    task.model(batch)

    return forward


def two_devices(device: torch.device) -> Call:
    """Prepares the MLP's forward pass on two devices, each with a copy of the model.

    Each call waits for the second device, because the measurement waits for the first one alone.
    """
    on_devices = [device, device if device.type == "cpu" else torch.device(device.type, 1)]
    tasks = [mlp(where) for where in on_devices]

    @torch.inference_mode()
    def forward() -> None:
        for task in tasks:
            task.model(task.batch)
        if device.type != "cpu":
            torch.accelerator.synchronize(1)

    return forward


WORKLOADS = [
    Workload("record an event", event_record, on_cpu=False),
    Workload("record an event and wait on another stream", event_wait, on_cpu=False),
    Workload("inference MLP, two streams", two_streams),
    Workload("inference MLP, two devices", two_devices),
]
