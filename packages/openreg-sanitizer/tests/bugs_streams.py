# SPDX-License-Identifier: BSD-3-Clause
"""Planted bugs between streams: a wait that is missing, too early, in the wrong direction, or for the wrong event."""

import torch
from planted import bug

SIZE = 1024


def ones():
    return torch.ones(SIZE, device="openreg")


def matrix():
    return torch.ones(64, 64, device="openreg")


def current():
    return torch.openreg.current_stream()


@bug("race", "wait_stream(third)")
def a_stream_waits_for_an_event_that_was_recorded_before_the_wait(fixed):
    side, third = torch.openreg.Stream(), torch.openreg.Stream()
    x, y = torch.zeros(SIZE, device="openreg"), torch.zeros(SIZE, device="openreg")
    torch.openreg.synchronize()
    with torch.openreg.stream(third):
        y.fill_(3)  # first
    with torch.openreg.stream(side):
        x.mul_(2)
    event = side.record_event()
    side.wait_stream(third)
    torch.openreg.current_stream().wait_event(event)
    if fixed:
        torch.openreg.current_stream().wait_stream(third)
    z = y + 1  # second
    torch.openreg.synchronize()
    return z


@bug("race", "torch.openreg.current_stream(1).wait_stream(side)")
def a_stream_of_the_second_device_does_not_wait(fixed):
    side = torch.openreg.Stream(device="openreg:1")
    x = torch.zeros(SIZE, device="openreg:1")
    torch.openreg.synchronize(1)
    with torch.openreg.stream(side):
        x.add_(2)  # first
    if fixed:
        torch.openreg.current_stream(1).wait_stream(side)
    y = x + 1  # second
    torch.openreg.synchronize(1)
    return y


@bug("race", "side.wait_stream(torch.openreg.default_stream())")
def a_side_stream_reads_before_the_write(fixed):
    side = torch.openreg.Stream()
    x = ones()
    x.mul_(2)  # first
    if fixed:
        side.wait_stream(current())
    with torch.openreg.stream(side):
        y = x + 1  # second
    current().wait_stream(side)
    return y


@bug("race", "wait_stream(side)")
def the_result_of_a_side_stream_is_read_too_early(fixed):
    side = torch.openreg.Stream()
    x = ones()
    y = torch.zeros_like(x)
    side.wait_stream(current())
    with torch.openreg.stream(side):
        torch.mul(x, 2, out=y)  # first
    if fixed:
        current().wait_stream(side)
    z = y + 1  # second
    current().wait_stream(side)
    return z


@bug("race", "wait_stream(side)")
def an_input_is_overwritten_while_a_side_stream_reads_it(fixed):
    side = torch.openreg.Stream()
    x = ones()
    side.wait_stream(current())
    with torch.openreg.stream(side):
        y = x + 1  # first
    if fixed:
        current().wait_stream(side)
    x.zero_()  # second
    current().wait_stream(side)
    return y


@bug("race", "wait_stream(side)")
def two_streams_write_the_same_tensor(fixed):
    side = torch.openreg.Stream()
    x = ones()
    side.wait_stream(current())
    with torch.openreg.stream(side):
        x.fill_(3)  # first
    if fixed:
        current().wait_stream(side)
    x.fill_(4)  # second
    current().wait_stream(side)
    return x


@bug("race", "wait_stream(side)")
def an_event_is_recorded_before_the_kernel(fixed):
    side = torch.openreg.Stream()
    done = torch.openreg.Event()
    x = ones()
    side.wait_stream(current())
    if not fixed:
        done.record(side)
    with torch.openreg.stream(side):
        x.mul_(2)  # first
    if fixed:
        done.record(side)
    current().wait_event(done)
    y = x + 1  # second
    current().wait_stream(side)
    return y


@bug("race", "wait_stream(producer)")
def the_event_of_another_stream_is_waited_for(fixed):
    producer, other = torch.openreg.Stream(), torch.openreg.Stream()
    x, z = ones(), ones()
    for stream in (producer, other):
        stream.wait_stream(current())
    with torch.openreg.stream(producer):
        x.mul_(2)  # first
    with torch.openreg.stream(other):
        z.mul_(2)
    current().wait_event((producer if fixed else other).record_event())
    y = x + 1  # second
    current().wait_stream(producer)
    current().wait_stream(other)
    return y


@bug("race", "wait_stream(side)")
def an_event_is_waited_for_before_it_is_recorded(fixed):
    side = torch.openreg.Stream()
    done = torch.openreg.Event()
    x = ones()
    side.wait_stream(current())
    if not fixed:
        current().wait_event(done)
    with torch.openreg.stream(side):
        x.mul_(2)  # first
        done.record()
    if fixed:
        current().wait_event(done)
    y = x + 1  # second
    current().wait_stream(side)
    return y


@bug("race", "consumer.wait_stream(producer)")
def the_wait_has_the_wrong_direction(fixed):
    producer, consumer = torch.openreg.Stream(), torch.openreg.Stream()
    x = ones()
    producer.wait_stream(current())
    consumer.wait_stream(current())
    with torch.openreg.stream(producer):
        x.mul_(2)  # first
    if fixed:
        consumer.wait_stream(producer)
    else:
        producer.wait_stream(consumer)
    with torch.openreg.stream(consumer):
        y = x + 1  # second
    current().wait_stream(producer)
    current().wait_stream(consumer)
    return y


@bug("race", "wait_stream(side)")
def the_wait_comes_before_the_last_kernel(fixed):
    side = torch.openreg.Stream()
    x = ones()
    side.wait_stream(current())
    with torch.openreg.stream(side):
        x.mul_(2)
        if not fixed:
            current_of_main = torch.openreg.default_stream()
            current_of_main.wait_stream(side)
        x.add_(1)  # first
    if fixed:
        current().wait_stream(side)
    y = x + 1  # second
    current().wait_stream(side)
    return y


@bug("race", "wait_stream(side)", report="BVLC/caffe#2998")
def a_prefetcher_hands_out_a_batch_that_is_still_copied(fixed):
    side = torch.openreg.Stream()
    batch = torch.ones(SIZE).pin_memory()
    x = torch.zeros(SIZE, device="openreg")
    side.wait_stream(current())
    with torch.openreg.stream(side):
        x.copy_(batch, non_blocking=True)  # first
    if fixed:
        current().wait_stream(side)
    y = x * 2  # second
    torch.openreg.synchronize()
    return y


@bug("race", "wait_stream(torch.openreg.default_stream())", report="BVLC/caffe#2998")
def a_prefetcher_overwrites_the_batch_in_use(fixed):
    side = torch.openreg.Stream()
    batch = torch.ones(SIZE).pin_memory()
    x = ones()
    side.wait_stream(current())
    y = x * 2  # first
    if fixed:
        side.wait_stream(current())
    with torch.openreg.stream(side):
        x.copy_(batch, non_blocking=True)  # second
    torch.openreg.synchronize()
    return y


@bug("race", "wait_stream(side)")
def overlapping_columns_are_written(fixed):
    side = torch.openreg.Stream()
    x = matrix()
    side.wait_stream(current())
    with torch.openreg.stream(side):
        x[:, 0:32].mul_(2)  # first
    begin = 32 if fixed else 31
    x[:, begin:64].add_(1)  # second
    current().wait_stream(side)
    return x


@bug("race", "wait_stream(side)")
def overlapping_rows_are_written(fixed):
    side = torch.openreg.Stream()
    x = matrix()
    side.wait_stream(current())
    with torch.openreg.stream(side):
        x[0:32].mul_(2)  # first
    begin = 32 if fixed else 31
    x[begin:].add_(1)  # second
    current().wait_stream(side)
    return x


@bug("race", "wait_stream(side)")
def a_transposed_view_is_read(fixed):
    side = torch.openreg.Stream()
    x = matrix()
    side.wait_stream(current())
    with torch.openreg.stream(side):
        x[3].mul_(2)  # first
    column = x.t()[:, 4 if fixed else 3]
    y = column + 1  # second
    current().wait_stream(side)
    return y


@bug("race", "third.wait_stream(second)")
def a_chain_of_streams_lacks_a_link(fixed):
    first, second, third = (torch.openreg.Stream() for _ in range(3))
    x, y = ones(), ones()
    first.wait_stream(current())
    with torch.openreg.stream(first):
        x.mul_(2)
    second.wait_stream(first)
    with torch.openreg.stream(second):
        torch.add(x, 1, out=y)  # first
    third.wait_stream(second if fixed else first)
    with torch.openreg.stream(third):
        z = y * 2  # second
    torch.openreg.synchronize()
    return z


@bug("race", "wait_stream(side)")
def an_indexed_update_is_read_too_early(fixed):
    side = torch.openreg.Stream()
    x = matrix()
    index = torch.tensor([1, 2], device="openreg")
    rows = torch.ones(2, 64, device="openreg")
    side.wait_stream(current())
    with torch.openreg.stream(side):
        x.index_add_(0, index, rows)  # first
    if fixed:
        current().wait_stream(side)
    y = x.sum()  # second
    torch.openreg.synchronize()
    return y


@bug("race", "wait_stream(side)")
def a_product_is_read_too_early(fixed):
    side = torch.openreg.Stream()
    x, y = matrix(), matrix()
    side.wait_stream(current())
    with torch.openreg.stream(side):
        torch.mm(x, x, out=y)  # first
    if fixed:
        current().wait_stream(side)
    z = y.relu()  # second
    torch.openreg.synchronize()
    return z


@bug("race", "wait_stream(side)")
def random_numbers_are_read_too_early(fixed):
    side = torch.openreg.Stream()
    x = ones()
    side.wait_stream(current())
    with torch.openreg.stream(side):
        x.normal_()  # first
    if fixed:
        current().wait_stream(side)
    y = x.abs()  # second
    torch.openreg.synchronize()
    return y


@bug("race", "wait_stream(side)")
def a_list_of_tensors_is_updated_on_a_side_stream(fixed):
    side = torch.openreg.Stream()
    parameters = [ones(), ones()]
    side.wait_stream(current())
    with torch.openreg.stream(side):
        torch._foreach_mul_(parameters, 2.0)  # first
    if fixed:
        current().wait_stream(side)
    y = parameters[1] + 1  # second
    torch.openreg.synchronize()
    return y


@bug("race", "wait_stream(side)")
def weights_are_read_while_a_side_stream_updates_them(fixed):
    side = torch.openreg.Stream()
    x = ones()
    w = torch.full((SIZE,), 2.0, device="openreg").requires_grad_()
    x.requires_grad_()
    side.wait_stream(current())
    y = x * w
    y.sum().backward()
    current().synchronize()
    with torch.openreg.stream(side), torch.no_grad():
        w.sub_(0.1)  # first
    if fixed:
        current().wait_stream(side)
    z = w * 2  # second
    torch.openreg.synchronize()
    return z


@bug("race", "side.wait_stream(torch.openreg.default_stream())")
def a_backward_kernel_races_with_an_update(fixed):
    side = torch.openreg.Stream()
    x = ones().requires_grad_()
    w = torch.full((SIZE,), 2.0, device="openreg").requires_grad_()
    side.wait_stream(current())
    y = x * w  # first
    side.wait_stream(current())
    y.backward(ones())
    if fixed:
        side.wait_stream(current())
    with torch.openreg.stream(side):
        w.detach().sub_(0.1)  # second
    torch.openreg.synchronize()
    return x.grad


@bug("race", "side.wait_stream(torch.openreg.default_stream(1))")
def another_device_receives_a_copy_on_another_stream(fixed):
    x = ones()
    side = torch.openreg.Stream(device="openreg:1")
    y = torch.zeros(SIZE, device="openreg:1")
    side.wait_stream(torch.openreg.current_stream(1))
    y.copy_(x, non_blocking=True)
    y.mul_(3)  # first
    if fixed:
        side.wait_stream(torch.openreg.current_stream(1))
    with torch.openreg.stream(side):
        z = y + 1  # second
    torch.openreg.synchronize(0)
    torch.openreg.synchronize(1)
    return z


@bug("race", "wait_stream(torch.openreg.default_stream())")
def the_source_of_a_copy_between_devices_is_overwritten(fixed):
    x = ones()
    side = torch.openreg.Stream()
    side.wait_stream(current())
    y = x.to("openreg:1", non_blocking=True)  # first
    if fixed:
        side.wait_stream(current())
    with torch.openreg.stream(side):
        x.zero_()  # second
    torch.openreg.synchronize(0)
    torch.openreg.synchronize(1)
    return y
