# SPDX-License-Identifier: BSD-3-Clause
"""Functions that the pools of the conformance kit run."""

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from openreg_testing.conformance.pool import CompletedTask

HERE = {"PYTHONPATH": str(Path(__file__).parent)}  # where processes find the tasks


@dataclass(frozen=True)
class Begin:
    """Prepares a process: gives its number."""

    def run(self):
        return os.getpid()


@dataclass(frozen=True)
class Ask:
    """Gives a variable of the environment, and says whether its process is to be used again."""

    name: str
    spends: bool = False

    def run(self):
        return CompletedTask(os.environ.get(self.name), self.spends)


@dataclass(frozen=True)
class Remember:
    """Gives a variable of the environment, and sets it for later tasks of its process."""

    name: str

    def run(self):
        before = os.environ.get(self.name)
        os.environ[self.name] = "kept"
        return before


@dataclass(frozen=True)
class Crash:
    """Ends its process."""

    def run(self):
        os.abort()


class Operator:
    """An entry of the table, as far as the check of arguments asks."""

    name = full_name = "stands_for_one"

    def __init__(self, call):
        self.call = call

    def __call__(self, *args, **kwargs):
        return self.call(*args, **kwargs)


def half_written(x):
    """A result of which PyTorch allocates all and writes one half."""
    import torch

    result = torch.empty(2 * len(x))
    result[: len(x)] = x
    return result


def unwritten_bools(x):
    """Bools that nothing writes."""
    import torch

    return x.new_empty(len(x), dtype=torch.bool)


def drawn(x):
    """Another result each time."""
    return x.bernoulli()


def whole(x):
    """The same result each time."""
    return x.sin()


@dataclass(frozen=True)
class IsDefined:
    """Whether the CPU gives what a function here returns again, and whether the flags are left as they were."""

    function: str

    def run(self):
        import torch

        from openreg_testing.conformance.operators.changes import ArgumentChange
        from openreg_testing.conformance.operators.check_arguments import is_defined
        from openreg_testing.conformance.operators.outcome import StandardError, attempt

        StandardError.open()
        op, x = Operator(globals()[self.function]), torch.rand(3)
        outcome = attempt(partial(op, x), "cpu")
        found = is_defined(op, ArgumentChange("", ((x,), {})), outcome, 0, (1e-5, 1e-5))
        return found, not torch.are_deterministic_algorithms_enabled()


@dataclass(frozen=True)
class OtherSizes:
    """Gives the shapes of the tensors that the check of arguments passes instead of one with this shape, by name."""

    shape: tuple[int, ...]

    def run(self):
        import torch

        from openreg_testing.conformance.operators.changes import _tensor_replacements

        replacements = _tensor_replacements(torch.zeros(self.shape))
        return {what: tuple(tensor.shape) for what, tensor in replacements if "elements in dimension" in what}
