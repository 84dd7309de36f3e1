# SPDX-License-Identifier: BSD-3-Clause
"""Compiles, loads and caches the kernels of generated code, with Inductor's ``CppPythonBindingsCodeCache``.

Each kernel becomes an extension module with one function that launches it. The header
``include/openreg/compile/kernel.h`` defines that module. Generated code calls ``compile_kernel``.
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

# The function that launches a kernel. compile_kernel() describes its arguments.
KernelLauncher = Callable[..., None]


@clear_on_fresh_cache
class _KernelCache(CppPythonBindingsCodeCache):
    """A cache of extension modules, on disk and in memory. The key is a hash of source and compiler command."""

    cache: dict[str, Any] = {}  # noqa: RUF012  (Inductor requires a dictionary of the class)

    @staticmethod
    def cache_clear() -> None:
        """Clears the cache in memory."""
        _KernelCache.cache.clear()

    @classmethod
    def load_kernel(cls, name: str, kinds: str, source: str, submit: Any = None) -> Callable[[], KernelLauncher]:
        """Returns a function that loads a kernel's module and returns the function that launches the kernel.

        With `submit`, another process starts to compile the module now, and the returned function waits for that
        process. Otherwise the returned function compiles the module. It raises an error of Inductor if the compilation
        fails.
        """
        # kernel.h follows Inductor's header, because a precompiled header has to be the first. The cache's key covers
        # `code`, but not the content of kernel.h. So `code` has the package versions, which imply that content.
        prefix, _, rest = source.partition("\n")
        header = f'#include "openreg/compile/kernel.h"  // {versions()}'
        code = f'{prefix}\n{header}\n{rest}\nOPENREG_KERNEL("{name}", "{kinds}")\n'
        flags = tuple(shlex.quote(f"-I{folder}") for folder in _INCLUDES)
        # Device type "cpu": for any other, Inductor optimizes little, because it expects only calls of GPU kernels.
        get_module = cls.load_async(code, "cpu", submit_fn=submit, extra_flags=flags)

        def get() -> KernelLauncher:
            kernel: KernelLauncher = getattr(get_module(), cls.entry_function)
            return kernel

        return get


def extent(tensor: torch.Tensor) -> int:
    """Returns the number of bytes that a tensor spans, which a launch reports to observers.

    They are those from the start of its first element to the end of its last one.
    """
    if tensor.numel() == 0:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.size(), tensor.stride(), strict=True))
    return (last + 1) * tensor.element_size()


def compile_kernel(async_compile: AsyncCompile, name: str, kinds: str, source: str) -> Any:
    """Compiles a kernel and returns the function that launches it, or a future of that function.

    If Inductor compiles in several processes, the result is a future, which ``async_compile.wait()`` replaces by the
    function. ``name`` appears in errors and profiles. ``kinds`` has a letter for each parameter of the kernel: d for a
    tensor on the device, h for a tensor of one element on the host, n for a number. The launch copies the value of an h
    parameter. ``source`` is C++ with a function ``kernel``.

    The function takes an argument for each parameter and the index of the device. It launches on the device's current
    stream, does not wait for the kernel, and raises ``torch.AcceleratorError`` if the launch fails.
    """
    if get_compile_threads() <= 1:
        return _KernelCache.load_kernel(name, kinds, source)()
    return LambdaFuture(_KernelCache.load_kernel(name, kinds, source, async_compile.submit))
