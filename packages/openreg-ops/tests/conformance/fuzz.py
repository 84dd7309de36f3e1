# SPDX-License-Identifier: BSD-3-Clause
"""Random calls: any entry of the table, any dtype, any layout, any form and any flag, compared with the CPU.

A seed stands for one call, whatever ran before it; a failure prints the seed that repeats it.
"""

import argparse
import contextlib
import copy
import functools
import math
import multiprocessing
import random
import time
import warnings

import torch
from torch.utils import _pytree as pytree

from . import entries
from .check_dtypes import ALL, NUMBERS, change, comparable, is_allowed
from .check_random import draws
from .comparison import difference, tolerance_of
from .exceptions import DETERMINISTIC_FORMULAS, DIFFERENCES, EXCEPTIONS, LATE, OTHER_STRIDES
from .outcome import DEVICE, attempt, warning_difference
from .pool import ONE_THREAD, environment
from .transfer import copy_inputs, inputs_of, tensors_in

TABLE = "torch.testing._internal.common_methods_invocations:op_db"
SAMPLES = 24  # of each entry and dtype
BATCH = 400  # calls per process
SECONDS_PER_CALL = 120
FLAGS = {
    "deterministic": lambda: torch.use_deterministic_algorithms(True),
    "deterministic, warning": lambda: torch.use_deterministic_algorithms(True, warn_only=True),
    "float32 matmul: medium": lambda: torch.set_float32_matmul_precision("medium"),
    "default dtype float64": lambda: torch.set_default_dtype(torch.float64),
    "no grad": lambda: torch.set_grad_enabled(False),
}


def reset_flags():
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("highest")
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)


# Other tensors with the same values: where the elements lie, and what lies between them.


def as_it_is(x, _):
    return x


def transposed(x, _):
    return x.mT.contiguous().mT if x.dim() > 1 else x


def permuted(x, chance):
    order = list(range(x.dim()))
    chance.shuffle(order)
    return x.permute(order).contiguous().permute([order.index(dim) for dim in range(x.dim())])


def every_second(x, _):
    if not x.dim():
        return x
    wide = torch.empty((*x.shape[:-1], 2 * x.shape[-1]), dtype=x.dtype)
    wide[..., ::2] = x
    return wide[..., ::2]


def with_offset(x, _):
    buffer = torch.empty(x.numel() + 3, dtype=x.dtype)
    buffer[3:] = x.reshape(-1)
    return buffer[3:].view(x.shape)


def expanded(x, chance):
    if not x.numel() or not x.dim():
        return x
    dim = chance.randrange(x.dim())
    return x.narrow(dim, 0, 1).expand(x.shape)


def channels_last(x, _):
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x


def conjugated(x, _):
    return torch.conj_physical(x).conj() if x.is_complex() else x


LAYOUTS = (as_it_is, as_it_is, transposed, permuted, every_second, with_offset, expanded, channels_last, conjugated)


class Call:
    """What a seed stands for."""

    def __init__(self, seed, table):
        chance = random.Random(seed)
        self.op = chance.choice(table)
        listed = entries.dtypes_of(self.op)
        self.dtype = chance.choice(listed if chance.random() < 0.6 else ALL)
        base = self.dtype if self.dtype in listed else listed[0]
        self.flags = chance.sample(sorted(FLAGS), chance.choice((0, 0, 1, 2)))
        self.form = chance.choice(("plain", "plain", "out", "in place"))
        samples = entries.samples_of(self.op, base)[:SAMPLES]
        self.layouts = []
        self.inputs = None
        if samples:
            inputs = change(inputs_of(chance.choice(samples)), base, self.dtype)
            self.inputs = pytree.tree_map_only(torch.Tensor, lambda x: self.lay_out(x, chance), inputs)
        self.out_layout = chance.choice(LAYOUTS)
        self.chance = chance

    def lay_out(self, x, chance):
        layout = chance.choice(LAYOUTS)
        self.layouts.append(layout.__name__)
        try:
            return layout(x.detach(), chance) if x.layout == torch.strided else x
        except (NotImplementedError, RuntimeError):  # a dtype that cannot be copied so
            return x

    def describe(self):
        shapes = [tuple(tensor.shape) for tensor in tensors_in(self.inputs)]
        return (
            f"{self.op.full_name} {entries.name_of(self.dtype)} {self.form} {shapes} {self.layouts} "
            f"{self.out_layout.__name__ if self.form == 'out' else ''} {self.flags}"
        )

    def run(self, device):
        """The outcome: results, and all operands afterwards with the memory around them."""

        def compute():
            args, kwargs = self.inputs
            if self.form == "out":
                kwargs = {**kwargs, "out": self.out}
            args, kwargs = copy_inputs(self.op, (args, kwargs), device)
            function = self.op.get_inplace() if self.form == "in place" else self.op
            result = function(*args, **kwargs)
            return result, [around(tensor) for tensor in tensors_in((args, kwargs)) if tensor.layout == torch.strided]

        torch.manual_seed(7)
        for flag in self.flags:
            FLAGS[flag]()
        try:
            return attempt(compute, device)
        finally:
            reset_flags()

    @functools.cached_property
    def has_one_answer(self):
        """Whether numbers are compared: not random ones, nor memory that nobody wrote."""
        function = self.op.get_inplace() if self.form == "in place" else self.op
        random_numbers = draws(self.op, self.inputs, lambda args, kwargs: function(*args, **kwargs))
        return self.op.name not in entries.UNINITIALISED and not random_numbers

    def prepare(self):
        """Whether there is such a form of the entry."""
        if (
            self.inputs is None
            or self.op.full_name in EXCEPTIONS
            or (self.form == "in place" and not self.op.get_inplace())
        ):
            return False
        if self.form == "out":
            plain = attempt(lambda: self.op(*copy_inputs(self.op, self.inputs, "cpu")[0], **self.inputs[1]), "cpu")
            tensors = tensors_in(plain.result)
            if not self.op.supports_out or plain.error is not None or not tensors:
                return False
            if any(tensor.layout != torch.strided for tensor in tensors):
                return False
            try:
                self.out = pytree.tree_map_only(
                    torch.Tensor, lambda x: self.out_layout(torch.zeros_like(x), self.chance), plain.result
                )
            except NotImplementedError:  # nothing is written to dtypes of less than a byte
                return False
        return True


def around(tensor):
    """The whole storage that a tensor lies in, with what is between its elements and beside them."""
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())


def find(call):
    """What is wrong, in one line, or None."""
    theirs, ours = call.run("cpu"), call.run(DEVICE)
    found = outcome_difference(call, ours, theirs)
    if found and not ours.late and (is_listed(call) or is_right(call, ours)):
        return None
    if found or ours.error is not None or theirs.error is not None:
        return found
    for mine, reference in zip(tensors_in(ours.result[0]), tensors_in(theirs.result[0]), strict=True):
        if mine.layout == torch.strided and mine.stride() != reference.stride() and mine.numel() > 1:
            if call.op.full_name in OTHER_STRIDES or is_listed(call):
                return None
            return f"strides {mine.stride()}, not {reference.stride()}"
    for mine, reference in zip(ours.result[1], theirs.result[1], strict=True):
        size = min(mine.numel(), reference.numel())
        memory = comparable(mine[:size])  # some operands have to be on the CPU
        found = values_difference(call, memory, comparable(reference[:size]), theirs, host=[memory])
        if found:
            return f"an operand, or the memory around it, afterwards: {found}"
    return None


def outcome_difference(call, ours, theirs):
    """Of errors, warnings and values."""
    if theirs.error is not None or ours.error is not None:
        if ours.late:
            known = call.op.full_name in LATE and theirs.error is not None
            return None if known else f"the device is lost: {ours.describe()}; the CPU: {theirs.describe()}"
        if is_allowed(call.op, call.dtype, ours, theirs) or has_two_faults(call, ours) or needs_no_kernel(call):
            return None
        return f"{ours.describe()}; the CPU: {theirs.describe()}"
    if set(ours.warnings) - set(theirs.warnings):
        return warning_difference(ours, theirs)
    return values_difference(call, comparable(ours.result[0]), comparable(theirs.result[0]), theirs)


def values_difference(call, ours, theirs, outcome, host=()):
    """Of tensors, within the tolerance of the outcome's results."""
    tolerance = widened(tolerance_of(call.op, call.dtype), outcome.result)
    return difference(ours, theirs, tolerance, values=call.has_one_answer, host=host)


def has_two_faults(call, ours):
    """Whether we refuse what the CPU, too, refuses in a common dtype: what is asked first is not promised."""
    if ours.error is None or call.dtype in NUMBERS:
        return False
    usual = copy.copy(call)
    usual.inputs = in_single_precision(call.inputs, call.dtype)
    if call.form == "out":
        usual.out = in_single_precision(call.out, call.dtype)
    return type(ours.error) is type(usual.run("cpu").error)


def in_single_precision(tree, dtype):
    """The same with dtype arguments and tensors of one dtype in float32, which lie as they did."""

    def convert(x):
        if x.layout != torch.strided or x.dtype != dtype:
            return x
        return change(around(x), dtype, torch.float32).as_strided(x.size(), x.stride(), x.storage_offset())

    return change(pytree.tree_map_only(torch.Tensor, convert, tree), dtype, torch.float32)


def needs_no_kernel(call):
    """Whether operands in an uncommon dtype are empty: some of the CPU's functions return before a kernel asks."""
    return call.dtype not in NUMBERS and not any(tensor.numel() for tensor in tensors_in(call.inputs))


# What the checks call each form.
CHECKS = {"plain": "layouts", "out": "writes: out", "in place": "writes: in-place"}


def is_listed(call):
    """Whether the call has a listed difference."""
    if call.op.full_name in DETERMINISTIC_FORMULAS and any(flag.startswith("deterministic") for flag in call.flags):
        return True
    return any(check.startswith(CHECKS[call.form]) for check in DIFFERENCES.get(call.op.full_name, ()))


def is_right(call, ours):
    """Whether the CPU is wrong: a few of its kernels refuse strides, or read or write beyond the memory of tensors that
    have them. What it gives in new tensors for dense operands is right."""
    return call.form != "in place" and not outcome_difference(call, ours, on_dense_operands(call).run("cpu"))


def on_dense_operands(call):
    """The same call with operands that are contiguous, and without out=."""
    dense = copy.copy(call)
    dense.form = "plain"
    dense.inputs = pytree.tree_map_only(
        torch.Tensor, lambda x: x if x.layout != torch.strided or x.is_contiguous() else x.contiguous(), call.inputs
    )
    return dense


def widened(tolerance, result):
    """Any element may be off by what the largest one is rounded by: it may be the small difference of large ones."""
    relative, absolute = tolerance
    largest = 0.0
    for tensor in tensors_in(result):
        if tensor.dtype in NUMBERS and tensor.is_floating_point() and tensor.layout == torch.strided and tensor.numel():
            largest = max(largest, tensor.detach().double().abs().nan_to_num(0, 0, 0).max().item())
    return relative, max(absolute, relative * largest)


def serve(connection, table, seeds):
    """Runs the calls; tells which one begins, and what was wrong with it."""
    warnings.simplefilter("ignore")
    import openreg_ops  # noqa: F401  (registers the operators)

    torch.set_num_threads(1)
    torch.set_warn_always(True)  # else a warning that PyTorch gives once is given on one of the devices only
    loaded = [op for op in entries.load(table) if entries.dtypes_of(op)]
    for seed in seeds:
        connection.send((seed, None))
        call = Call(seed, loaded)
        try:
            if not call.prepare():
                continue
            found = find(call)
        except Exception as error:
            found = f"the harness itself: {type(error).__name__}: {error}"
            torch.openreg.reset_device()
        if found:
            connection.send((seed, f"{found} [{call.describe()}]"))
    connection.send((None, None))


def run_batch(table, seeds):
    """Yields (seed, failure) of a process that runs the calls; one that dies or hangs costs the call it was at."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, table, seeds), daemon=True)
    with environment(**ONE_THREAD):
        process.start()
    theirs.close()
    seed = seeds[0]
    try:
        while True:
            if not ours.poll(SECONDS_PER_CALL):
                yield seed, f"took longer than {SECONDS_PER_CALL} s"
                return
            current, failure = ours.recv()
            if current is None:
                return
            seed = current
            yield seed, failure
    except EOFError:
        process.join(10)
        yield seed, f"the process ended with {process.exitcode}"
    finally:
        process.kill()


def fuzz(seconds, first, count=math.inf, table=TABLE):
    """Failures by seed, and how many calls were made, beginning with the seed `first`."""
    failures, seed, end = {}, first, time.monotonic() + seconds
    while time.monotonic() < end and seed < first + count:
        batch = range(seed, seed + int(min(BATCH, first + count - seed)))
        with contextlib.closing(run_batch(table, batch)) as progress:
            for current, failure in progress:
                seed = current + 1
                if failure:
                    failures[current] = failure
                    print(f"seed {current}: {failure}", flush=True)
                if time.monotonic() > end:
                    break
    return failures, seed - first


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="how long; 600 unless told")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9), help="the first seed")
    parser.add_argument("--count", type=float, default=math.inf, help="how many calls at most; 1 repeats a seed")
    options = parser.parse_args(arguments)
    print(f"from seed {options.seed}")
    failures, calls = fuzz(options.seconds, options.seed, options.count)
    print(f"{calls} calls, {len(failures)} failures")
    return 1 if failures or not calls else 0
