# SPDX-License-Identifier: BSD-3-Clause
"""Makes Inductor's C++ compiler accept paths with spaces and quotes (``torch/_inductor/cpp_builder.py``).

``CppBuilder`` joins a command to one line, which is then split as by a shell, but it quotes only the paths of include
folders. Paths of the cache, the temporary folder, torch, Python's libraries and the compiler are not quoted. With a
space or a quote in one of them, the compiler gets wrong arguments, or the line cannot be split. Kernels for the CPU
fail, too. The check of vector instructions then fails without a message, which makes all kernels slow.
"""

from __future__ import annotations

import functools
import os
import shlex
from types import ModuleType
from typing import Any


def quote_paths(cpp_builder: ModuleType) -> None:
    """Makes the ``CppBuilder`` of Inductor's module quote all paths, in the commands for kernels of every device.

    Commands without a path that needs quotes do not change. The process that needs a kernel builds the command, so
    compile workers need no change.
    """
    builder = cpp_builder.CppBuilder
    make = builder.__init__

    @functools.wraps(make)
    def make_quoted(
        self: Any,
        name: str,
        sources: str | list[str],
        BuildOption: Any,  # noqa: N803  (callers pass it by this name)
        output_dir: str = "",
    ) -> None:
        make(self, name, sources, BuildOption, output_dir)
        if not BuildOption.get_use_relative_path():
            _quote(self, [sources] if isinstance(sources, str) else sources, BuildOption)

    builder.__init__ = make_quoted
    # The script that checks vector instructions has the path of a library in a plain string literal.
    isa = cpp_builder.VecISA
    isa._avx_py_load = isa._avx_py_load.replace('"__lib_path__"', "r'''__lib_path__'''")


def _quote(builder: Any, sources: list[str], options: Any) -> None:
    """Quotes the parts of a command that PyTorch 2.13 does not quote. Parts that a later release quotes stay as is."""
    compiler, folders, header = options.get_compiler(), options.get_libraries_dirs(), options.precompiled_header
    paths = [compiler, builder.get_target_file_path(), *sources, *folders, *([header] if header else [])]
    if all(_quoted(path) == _with_slashes(path) for path in paths):
        return
    if builder._compiler == compiler:
        builder._compiler = _quoted(compiler)
    builder._sources_args = _with_end(builder._sources_args, " ".join(sources), " ".join(map(_quoted, sources)))
    builder._output = _with_end(builder._output, builder._target_file, _quoted(builder._target_file))
    for folder in folders:
        builder._libraries_dirs_args = builder._libraries_dirs_args.replace(f"-L{folder} ", f"-L{_quoted(folder)} ")
    if header:
        quoted = f"-include {_quoted(header)} "
        builder._include_dirs_args = builder._include_dirs_args.replace(f"-include {header} ", quoted)


def _with_slashes(path: str) -> str:
    """Returns the path with slashes, which commands have on Windows, too."""
    return path.replace(os.sep, "/")


def _quoted(path: str) -> str:
    return shlex.quote(_with_slashes(path))


def _with_end(text: str, plain: str, quoted: str) -> str:
    """Returns `text` with `quoted` in place of `plain` at its end, if it ends so."""
    return text.removesuffix(plain) + quoted if text.endswith(plain) else text
