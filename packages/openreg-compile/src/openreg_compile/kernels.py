# SPDX-License-Identifier: BSD-3-Clause
"""Compiles and loads the kernels of generated code, and keeps them (source: ``CppPythonBindingsCodeCache``).

A kernel becomes an extension module with one function that launches it; ``include/openreg/compile/kernel.h`` is what it
is made with. Generated code calls ``compile_kernel``.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch._inductor.async_compile import AsyncCompile, get_compile_threads
from torch._inductor.codecache import CppPythonBindingsCodeCache, LambdaFuture
from torch._inductor.utils import clear_on_fresh_cache

import openreg_runtime
from openreg_compile.registration import versions

_INCLUDES = [Path(module).parent / "include" for module in (__file__, str(openreg_runtime.__file__))]

Kernel = Callable[..., None]


@clear_on_fresh_cache
class _KernelCache(CppPythonBindingsCodeCache):
    """Extension modules by the hash of their source and of the command that compiles them; on disk and in memory."""

    cache: dict[str, Any] = {}  # noqa: RUF012  (as Inductor has it: one for the class)

    @staticmethod
    def cache_clear() -> None:
        """Forgets what is in memory."""
        _KernelCache.cache.clear()

    @classmethod
    def load_kernel(cls, name: str, kinds: str, source: str, submit: Any = None) -> Callable[[], Kernel]:
        """Compiles, with `submit` in another process; the result waits for that, and gives the function."""
        # Behind Inductor's own header, which has to come first where it is precompiled. The cache's key is this text
        # and the command, so what the header says has to show in the text.
        prefix, _, rest = source.partition("\n")
        header = f'#include "openreg/compile/kernel.h"  // {versions()}'
        code = f'{prefix}\n{header}\n{rest}\nOPENREG_KERNEL("{name}", "{kinds}")\n'
        flags = tuple(shlex.quote(f"-I{folder}") for folder in _INCLUDES)
        # Compiled as for the CPU: of code for other devices Inductor thinks that it is no more than a call.
        get_module = cls.load_async(code, "cpu", submit_fn=submit, extra_flags=flags)

        def get() -> Kernel:
            kernel: Kernel = getattr(get_module(), cls.entry_function)
            return kernel

        return get


def extent(tensor: torch.Tensor) -> int:
    """Returns the bytes of a tensor from its first element to its last: what observers see of a launch."""
    if tensor.numel() == 0:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.size(), tensor.stride(), strict=True))
    return (last + 1) * tensor.element_size()


def compile_kernel(async_compile: AsyncCompile, name: str, kinds: str, source: str) -> Any:
    """The function that launches a kernel, or a future for which ``async_compile.wait()`` puts it in place.

    ``name`` is shown in errors and profiles. ``kinds`` has a letter for each parameter of the kernel: d for a tensor of
    the device, h for a tensor of one element on the host, whose value is copied by the launch, n for a number.
    ``source`` is C++ with a function ``kernel``.

    The function takes an argument for each parameter and the number of the device, launches on the device's current
    stream, and returns. It raises ``torch.AcceleratorError`` where the launch fails.
    """
    if get_compile_threads() <= 1:
        return _KernelCache.load_kernel(name, kinds, source)()
    return LambdaFuture(_KernelCache.load_kernel(name, kinds, source, async_compile.submit))
