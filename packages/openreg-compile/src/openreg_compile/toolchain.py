# SPDX-License-Identifier: BSD-3-Clause
"""Lets Inductor's C++ compiler work with paths that have spaces and quotes (``torch/_inductor/cpp_builder.py``).

``CppBuilder`` joins the parts of a command to one line and has it split as a shell would, yet it quotes only the paths
of include folders. A space or a quote in the path of the cache, of the folder for temporary files, of torch, of
Python's libraries or of the compiler gives the compiler other arguments, or a line that cannot be split. Kernels for
the CPU fail as well. The check of vector instructions fails without a word, which makes all kernels slow.
"""

from __future__ import annotations

import functools
import os
import shlex
from types import ModuleType
from typing import Any


def quote_paths(cpp_builder: ModuleType) -> None:
    """Makes the ``CppBuilder`` of Inductor's module quote all paths, in the commands for kernels of every device.

    Commands without a path that needs quotes stay as they are. A command is made once, in the process that needs the
    kernel, so processes that compile on its behalf need nothing of this.
    """
    builder = cpp_builder.CppBuilder
    make = builder.__init__

    @functools.wraps(make)
    def make_quoted(
        self: Any,
        name: str,
        sources: str | list[str],
        BuildOption: Any,  # noqa: N803  (callers name it so)
        output_dir: str = "",
    ) -> None:
        make(self, name, sources, BuildOption, output_dir)
        if not BuildOption.get_use_relative_path():
            _quote(self, [sources] if isinstance(sources, str) else sources, BuildOption)

    builder.__init__ = make_quoted
    # The program that tries to load a library has its path between quotation marks.
    isa = cpp_builder.VecISA
    isa._avx_py_load = isa._avx_py_load.replace('"__lib_path__"', "r'''__lib_path__'''")


def _quote(builder: Any, sources: list[str], options: Any) -> None:
    """Quotes what is as PyTorch 2.13 leaves it; what a later release quotes itself differs from that, and stays."""
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
    """The path as commands have it: with slashes on Windows, too."""
    return path.replace(os.sep, "/")


def _quoted(path: str) -> str:
    return shlex.quote(_with_slashes(path))


def _with_end(text: str, plain: str, quoted: str) -> str:
    return text.removesuffix(plain) + quoted if text.endswith(plain) else text
