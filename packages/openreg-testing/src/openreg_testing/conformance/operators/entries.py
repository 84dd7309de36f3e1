# SPDX-License-Identifier: BSD-3-Clause
"""The entries of PyTorch's table of operators, their dtypes and their samples.

An entry is an OpInfo, such as those of ``op_db``. A sample is a SampleInput, the arguments of one call.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import random
from typing import Any

import torch

from . import device_under_test

# The dtypes in which entries are run, in order of preference: the first one that PyTorch lists for an entry is the
# entry's first dtype.
DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64, torch.bfloat16, torch.float16)

# The results of these operators have uninitialized content, so only their sizes, strides and dtypes are compared.
UNINITIALIZED = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "resize_",
    "resize_as_",
}


@functools.cache
def load(table: str) -> Any:
    """Returns the entries of a table, which is named as "module:attribute"."""
    module, attribute = table.split(":")
    if module.startswith("torch.testing"):
        draw_freely()
        draw_quickly()
    return getattr(importlib.import_module(module), attribute)


def draw_freely() -> None:
    """Stops the table's entries of random operators from seeding the generators on every call.

    The checks of random numbers call such an operator repeatedly and compare the results.
    """
    from torch.testing._internal import common_methods_invocations

    common_methods_invocations.wrapper_set_seed = lambda operator, *args, **kwargs: operator(*args, **kwargs)  # type: ignore[attr-defined]


def draw_quickly() -> None:
    """Replaces what PyTorch does before each sample: it seeds the generators and looks for the calling test.

    Both are slower than most samples, because they walk the caller's stack (see seed()). Here no test of PyTorch's is
    running.
    """
    from torch.testing._internal import common_utils

    common_utils.extract_test_fn = lambda: None
    common_utils.set_rng_seed = seed


def seed(number: int | None = None) -> None:
    """Seeds the CPU and the device under test.

    ``torch.manual_seed`` is not used: for each accelerator that is not initialized it records a traceback, which is
    slow.
    """
    from torch.testing._internal import common_utils

    number = common_utils.SEED if number is None else number
    torch.default_generator.manual_seed(number)
    of_device = getattr(device_under_test.module(), "manual_seed_all", None)
    if of_device is not None:
        of_device(number)
    random.seed(number)
    if common_utils.TEST_NUMPY:
        common_utils.np.random.seed(number)  # type: ignore[attr-defined]


def dtypes_of(op: Any) -> list[torch.dtype]:
    """Returns those of DTYPES that PyTorch lists for the CPU or for CUDA."""
    listed = set(op.dtypes) | set(op.dtypesIfCUDA or ())
    return [dtype for dtype in DTYPES if dtype in listed]


def differentiable(op: Any, dtype: torch.dtype) -> bool:
    """Returns True if PyTorch lists a gradient for this dtype, on the CPU or for CUDA."""
    listed = set(op.backward_dtypes or ()) | set(op.backward_dtypesIfCUDA or ())
    return op.supports_autograd and dtype in listed and (dtype.is_floating_point or dtype.is_complex)


# The last two lists that samples_of() has made: (entry, (dtype, gradient), samples).
_recent_samples: list[tuple[Any, tuple[torch.dtype, bool], list[Any]]] = []


def samples_of(op: Any, dtype: torch.dtype, gradient: bool = False) -> list[Any]:
    """Returns the table's samples on the CPU. Every call returns equal ones, which callers must not change.

    Keeps the last two lists, because the checks of an entry use one with gradients and one without. Seeds PyTorch's
    generators.
    """
    seed(2026)
    for entry, key, samples in _recent_samples:
        if entry is op and key == (dtype, gradient):
            return list(samples)
    samples = list(op.sample_inputs("cpu", dtype, requires_grad=gradient))
    _recent_samples[:] = [*_recent_samples[-1:], (op, (dtype, gradient), samples)]
    return list(samples)


def spread(samples: list[Any], most: int) -> list[Any]:
    """Returns at most `most` samples, evenly distributed over the list."""
    if len(samples) <= most:
        return samples
    return [samples[index * len(samples) // most] for index in range(most)]


def of_each_kind(samples: list[Any], most: int) -> list[Any]:
    """Returns at most `most` samples: the first of each kind, then the second of each kind, and so on."""
    if len(samples) <= most:
        return samples
    kinds: dict[Any, list[Any]] = {}
    for sample in samples:
        kinds.setdefault(_kind((sample.input, sample.args, sample.kwargs)), []).append(sample)
    in_turns = (sample for turn in itertools.zip_longest(*kinds.values()) for sample in turn if sample is not None)
    return list(itertools.islice(in_turns, most))


def _kind(value: Any) -> Any:
    """Returns the properties of an argument on which the choice of a kernel, or of a branch in it, may depend."""
    if isinstance(value, torch.Tensor):
        has_strides = value.layout == torch.strided
        dense = has_strides and value.is_contiguous()
        return (value.dtype, value.layout, value.dim(), has_strides and value.numel() == 0, dense)
    if isinstance(value, (tuple, list)):
        return (type(value), *map(_kind, value))
    if isinstance(value, dict):
        return tuple((name, _kind(value[name])) for name in sorted(value, key=str))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return (type(value), value < 0, value == 0)
    choices = (str, bool, type(None), torch.dtype, torch.layout, torch.memory_format)
    return value if isinstance(value, choices) else type(value)


def name_of(dtype: torch.dtype) -> str:
    """Returns the name of a dtype without "torch."."""
    return str(dtype).removeprefix("torch.")
