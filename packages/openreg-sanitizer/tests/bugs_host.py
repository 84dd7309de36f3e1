# SPDX-License-Identifier: BSD-3-Clause
"""Planted bugs between the host and the device: pinned memory that a copy still uses."""

import io
import pickle

import torch
from planted import bug

SIZE = 1024


def ones():
    return torch.ones(SIZE, device="openreg")


def pinned():
    return torch.zeros(SIZE).pin_memory()


def current():
    return torch.openreg.current_stream()


@bug("host-read", "synchronize()", report="pytorch/pytorch#137951")
def the_host_reads_before_the_copy_is_done(fixed):
    x, host = ones(), pinned()
    host.copy_(x, non_blocking=True)  # first
    if fixed:
        current().synchronize()
    total = host.sum()  # second
    torch.openreg.synchronize()
    return total


@bug("host-read", "synchronize()", report="pytorch/pytorch#137878")
def a_slice_of_pinned_memory_is_read_too_early(fixed):
    x, host = ones(), pinned()
    host[:512].copy_(x[:512], non_blocking=True)  # first
    if fixed:
        current().synchronize()
    total = host[100:600] + 1  # second
    torch.openreg.synchronize()
    return total


@bug("host-read", "synchronize()", report="pytorch/pytorch#182190")
def one_value_is_read_too_early(fixed):
    x, host = ones(), pinned()
    host.copy_(x, non_blocking=True)  # first
    if fixed:
        current().synchronize()
    value = host[3].item()  # second
    torch.openreg.synchronize()
    return value


@bug("host-read", "synchronize()", report="sgl-project/sglang#16493")
def a_list_is_made_too_early(fixed):
    x, host = ones(), pinned()
    host.copy_(x, non_blocking=True)  # first
    if fixed:
        current().synchronize()
    values = host.tolist()  # second
    torch.openreg.synchronize()
    return values


@bug("host-read", "synchronize()", report="stepfun-ai/SteptronOss#38")
def pinned_memory_is_copied_on_the_host_too_early(fixed):
    x, host, target = ones(), pinned(), torch.zeros(SIZE)
    host.copy_(x, non_blocking=True)  # first
    if fixed:
        current().synchronize()
    target.copy_(host)  # second
    torch.openreg.synchronize()
    return target


@bug("host-read", "synchronize()")
def a_copy_is_saved_too_early(fixed):
    host = (ones() * 2).to("cpu", non_blocking=True)  # first
    if fixed:
        current().synchronize()
    torch.save({"weight": host}, io.BytesIO())  # second
    torch.openreg.synchronize()


@bug("host-read", "synchronize()")
def a_copy_is_saved_in_the_old_format_too_early(fixed):
    host = (ones() * 2).to("cpu", non_blocking=True)  # first
    if fixed:
        current().synchronize()
    torch.save(host, io.BytesIO(), _use_new_zipfile_serialization=False)  # second
    torch.openreg.synchronize()


@bug("host-read", "synchronize()")
def a_copy_is_pickled_too_early(fixed):
    host = (ones() * 2).to("cpu", non_blocking=True)  # first
    if fixed:
        current().synchronize()
    content = pickle.dumps(host)  # second
    torch.openreg.synchronize()
    return content


@bug("host-read", "synchronize()")
def an_array_is_made_too_early(fixed):
    host = (ones() * 2).to("cpu", non_blocking=True)  # first
    if fixed:
        current().synchronize()
    array = host.numpy()  # second
    torch.openreg.synchronize()
    return array


@bug("host-read", "synchronize()")
def rows_are_chosen_by_indices_too_early(fixed):
    host = torch.zeros(1024, dtype=torch.int64).pin_memory()
    host.copy_(torch.ones(1024, dtype=torch.int64, device="openreg"), non_blocking=True)  # first
    if fixed:
        current().synchronize()
    rows = torch.ones(4)[host]  # second
    torch.openreg.synchronize()
    return rows


@bug("host-read", "side.synchronize()")
def the_wrong_stream_is_synchronized(fixed):
    side = torch.openreg.Stream()
    x, host = ones(), pinned()
    side.wait_stream(current())
    with torch.openreg.stream(side):
        host.copy_(x, non_blocking=True)  # first
    (side if fixed else current()).synchronize()
    total = host.sum()  # second
    torch.openreg.synchronize()
    return total


@bug("host-read", "synchronize()")
def the_event_is_recorded_before_the_copy(fixed):
    x, host = ones(), pinned()
    done = torch.openreg.Event()
    if not fixed:
        done.record()
    host.copy_(x, non_blocking=True)  # first
    if fixed:
        done.record()
    done.synchronize()
    total = host.sum()  # second
    torch.openreg.synchronize()
    return total


@bug("host-write", "synchronize()", report="pytorch/pytorch#127612")
def the_source_is_changed_before_it_is_sent(fixed):
    x, host = ones(), pinned()
    x.copy_(host, non_blocking=True)  # first
    if fixed:
        current().synchronize()
    host[-1].fill_(-1)  # second
    torch.openreg.synchronize()
    return x


@bug("host-write", "synchronize()", report="pytorch/pytorch#126946")
def a_staging_buffer_is_filled_again_too_early(fixed):
    x, host = ones(), pinned()
    for step in range(2):
        if fixed:
            current().synchronize()
        host.fill_(step)  # second
        x.copy_(host, non_blocking=True)  # first
    torch.openreg.synchronize()
    return x


@bug("host-write", "synchronize()")
def the_host_writes_while_a_copy_writes(fixed):
    x, host = ones(), pinned()
    host.copy_(x, non_blocking=True)  # first
    if fixed:
        current().synchronize()
    host.zero_()  # second
    torch.openreg.synchronize()
    return host


@bug("race", "wait_stream(side)")
def two_streams_copy_into_one_pinned_buffer(fixed):
    side = torch.openreg.Stream()
    x, y, host = ones(), ones(), pinned()
    side.wait_stream(current())
    with torch.openreg.stream(side):
        host.copy_(x, non_blocking=True)  # first
    if fixed:
        current().wait_stream(side)
    host.copy_(y, non_blocking=True)  # second
    torch.openreg.synchronize()
    return host


@bug("race", "wait_stream(side)")
def a_pinned_buffer_is_sent_on_before_it_is_full(fixed):
    side = torch.openreg.Stream()
    x, y, host = ones(), ones(), pinned()
    side.wait_stream(current())
    with torch.openreg.stream(side):
        host.copy_(x, non_blocking=True)  # first
    if fixed:
        current().wait_stream(side)
    y.copy_(host, non_blocking=True)  # second
    torch.openreg.synchronize()
    return y
