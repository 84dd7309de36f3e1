# SPDX-License-Identifier: BSD-3-Clause
"""Bugs in collectives that tests have to detect. Each replaces a function of torch.distributed.

wrong rank     values come from another rank, go to another one, or those of one rank are lost
missing wait   a call returns without ordering the caller's stream behind it
stale buffer   the results never reach the caller's tensors
wrong divisor  an average is divided by another number
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch import distributed
from torch.utils import _pytree as pytree

Function = Callable[..., Any]

# What each kind of call (properties.Rank) uses of torch.distributed.
FUNCTIONS = {
    "all_reduce": "all_reduce",
    "reduce": "reduce",
    "reduce_scatter": "reduce_scatter",
    "broadcast": "broadcast",
    "all_gather": "all_gather",
    "uneven_all_gather": "all_gather",
    "gathered_into_one": "all_gather_into_tensor",
    "gather": "gather",
    "scatter": "scatter",
    "all_to_all": "all_to_all",
    "uneven_all_to_all": "all_to_all_single",
    "ring": "irecv",
    "coalesced": "_coalescing_manager",
}
AVERAGES = ("all_reduce", "reduce", "reduce_scatter")


def mistakes_of(kind: str) -> list[str]:
    """Those that can be made in a kind of call."""
    return ["wrong rank", "missing wait", "stale buffer", *(["wrong divisor"] if kind in AVERAGES else [])]


class Unordered:
    """A work whose wait does nothing."""

    def wait(self) -> None:
        """Returns at once."""

    def is_completed(self) -> bool:
        """Says so from the beginning."""
        return True


@functools.cache
def _group() -> Any:
    """Messages in it wait for none of those under test."""
    return distributed.new_group()


class Held:
    """A stream that goes on when the next rank says so."""

    def __init__(self) -> None:
        rank, size = distributed.get_rank(), distributed.get_world_size()
        self.before = (rank - 1) % size
        self.stream = torch.Stream("openreg")
        with self.stream:
            distributed.irecv(torch.empty(1, device="openreg"), (rank + 1) % size, _group()).wait()

    def release(self) -> None:
        """Lets the stream of the rank before go on, and waits until this rank's has come to its end."""
        distributed.isend(torch.ones(1, device="openreg"), self.before, _group()).wait()
        torch.openreg.synchronize()


def _stale(real: Function) -> Function:
    def call(*args: Any, **options: Any) -> Any:
        return real(*pytree.tree_map_only(torch.Tensor, torch.clone, args), **options)

    return call


def _unordered(real: Function, held: Held) -> Function:
    def call(*args: Any, **options: Any) -> Unordered:
        with held.stream:
            real(*args, **{**options, "async_op": True})
        return Unordered()

    return call


def _unordered_message(real: Function, held: Held) -> Function:
    def call(*args: Any, **options: Any) -> Unordered:
        with held.stream:
            real(*args, **options)
        return Unordered()

    return call


def _unordered_sending(real: Function) -> Function:
    def call(*args: Any, **options: Any) -> Unordered:
        real(*args, **options)
        return Unordered()

    return call


def _unordered_block(real: Function, held: Held) -> Function:
    @contextlib.contextmanager
    def call(*args: Any, **options: Any) -> Iterator[Unordered]:
        with held.stream, real(*args, **options):
            yield Unordered()

    return call


def _divided_wrongly(real: Function) -> Function:
    def call(output: torch.Tensor, *args: Any, **options: Any) -> None:
        rest = [distributed.ReduceOp.SUM if one == distributed.ReduceOp.AVG else one for one in args]
        real(output, *rest, **options)
        output.div_(distributed.get_world_size() + 1)

    return call


def _other_rank(kind: str, real: Function) -> Function:
    """The function with another rank, or with what belongs to ranks in another order."""
    size = distributed.get_world_size()
    is_last = distributed.get_rank() == size - 1

    def turned(values: list[Any] | None) -> list[Any] | None:
        return None if values is None else [*values[1:], *values[:1]]

    def lost(tensor: torch.Tensor, *args: Any, **options: Any) -> Any:
        return real(tensor.zero_() if is_last else tensor, *args, **options)

    def rooted(tensor: torch.Tensor, root: int, *args: Any, **options: Any) -> Any:
        return real(tensor, (root + 1) % size, *args, **options)

    def first_turned(values: Any, *args: Any, **options: Any) -> Any:
        return real(turned(values), *args, **options)

    def second_turned(tensor: Any, values: Any, *args: Any, **options: Any) -> Any:
        return real(tensor, turned(values), *args, **options)

    def rows_turned(output: torch.Tensor, *args: Any, **options: Any) -> None:
        real(output, *args, **options)
        output.copy_(output.roll(1, 0))

    return {
        "all_reduce": lost,
        "reduce": rooted,
        "reduce_scatter": second_turned,
        "broadcast": rooted,
        "all_gather": first_turned,
        "uneven_all_gather": first_turned,
        "gathered_into_one": rows_turned,
        "gather": second_turned,
        "scatter": second_turned,
        "all_to_all": first_turned,
        "uneven_all_to_all": rows_turned,
        "coalesced": lost,
    }[kind]


@contextlib.contextmanager
def plant(kind: str, mistake: str) -> Iterator[None]:
    """The functions of torch.distributed that a kind of call uses make the mistake."""
    name, held = FUNCTIONS[kind], None
    real = getattr(distributed, name)
    if mistake == "missing wait":
        held = Held()
        unordered = {"ring": _unordered_message, "coalesced": _unordered_block}.get(kind, _unordered)
        changed = {name: unordered(real, held)}
        if kind == "ring":  # a message that is sent waits for the one who receives it
            changed["isend"] = _unordered_sending(distributed.isend)
    elif mistake == "wrong rank" and kind == "ring":
        size = distributed.get_world_size()
        send, receive = distributed.isend, distributed.irecv
        changed = {
            "isend": lambda tensor, to: send(tensor, (to + 1) % size),
            "irecv": lambda tensor, source: receive(tensor, (source - 1) % size),
        }
    else:
        name = "all_reduce" if kind == "coalesced" else name
        real = getattr(distributed, name)
        made = {
            "wrong rank": lambda: _other_rank(kind, real),
            "stale buffer": lambda: _stale(real),
            "wrong divisor": lambda: _divided_wrongly(real),
        }
        changed = {name: made[mistake]()}
    try:
        with mock.patch.multiple(distributed, **changed):
            yield
    finally:
        if held is not None:
            held.release()
