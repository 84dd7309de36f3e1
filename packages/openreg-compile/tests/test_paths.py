# SPDX-License-Identifier: BSD-3-Clause
"""Compilation works if the paths of packages, caches and compiler contain characters that a shell interprets."""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from _platform import NAME_WITH_QUOTES
from torch._inductor import cpp_builder
from torch._inductor.cpu_vec_isa import pick_vec_isa

from openreg_compile.toolchain import quote_paths

# A kernel of the device and one of the CPU, whose commands one class makes, and the vector instructions that it found.
PROGRAM = """
import torch, openreg_compile
from torch._inductor.cpu_vec_isa import pick_vec_isa

def step(x):
    return (x.sin() + 1).sum(0)

x = torch.linspace(0, 1, 1000).reshape(100, 10)
for device in ("openreg", "cpu"):
    torch.testing.assert_close(torch.compile(step)(x.to(device)).cpu(), step(x))
print(torch.__file__)
print(openreg_compile.__file__)
print(pick_vec_isa())
"""


def link_to(target, link):
    try:
        link.symlink_to(target, target_is_directory=target.is_dir())
    except OSError as error:
        pytest.skip(f"the system does not let this user make links: {error}")


@pytest.mark.endurance  # in a cache of its own, for which the shared header is compiled anew
def test_kernels_are_compiled_where_all_paths_need_quotes(tmp_path):
    folder = tmp_path / NAME_WITH_QUOTES
    site, temporary = folder / "site", folder / "temporary"
    site.mkdir(parents=True)
    temporary.mkdir()
    for package in ("torch", "openreg_runtime", "openreg_ops", "openreg_compile"):
        link_to(Path(importlib.util.find_spec(package).origin).parent, site / package)
    compiler = Path(shutil.which(cpp_builder.get_cpp_compiler()))
    link_to(compiler, folder / compiler.name)
    settings = {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")])),
        "CXX": str(folder / compiler.name),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
        **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary)),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    files = [str(site / package / "__init__.py") for package in ("torch", "openreg_compile")]
    assert done.stdout.splitlines() == [*files, str(pick_vec_isa())]


@pytest.mark.skipif(" " in torch.__file__, reason="this installation's paths need quotes")
def test_commands_whose_paths_need_no_quotes_are_those_of_pytorch():
    def command(make):
        builder = object.__new__(cpp_builder.CppBuilder)
        options = cpp_builder.CppTorchOptions()
        options.precompiled_header = "/folder/header.h"
        make(builder, "kernel", ["/folder/a.cpp", "/folder/b.cpp"], options, "/folder")
        return builder.get_command_line()

    make = cpp_builder.CppBuilder.__init__
    assert command(make) == command(make.__wrapped__)


def test_what_a_release_of_pytorch_quotes_itself_is_quoted_once():
    quoted = dict.fromkeys(("_compiler", "_sources_args", "_output", "_libraries_dirs_args", "_include_dirs_args"))

    class Builder:
        _target_file = "/a b/k"

        def __init__(self, name, sources, BuildOption, output_dir=""):  # noqa: N803  (PyTorch's name)
            quoted["_compiler"] = self._compiler = shlex.quote(BuildOption.get_compiler())
            quoted["_sources_args"] = self._sources_args = shlex.join(sources)
            quoted["_output"] = self._output = "-o " + shlex.quote(self._target_file)
            quoted["_libraries_dirs_args"] = self._libraries_dirs_args = "-L'/a b/lib' "
            quoted["_include_dirs_args"] = self._include_dirs_args = "-include '/a b/h.h' "

        def get_target_file_path(self):
            return self._target_file

    options = SimpleNamespace(
        get_compiler=lambda: "/a b/g++",
        get_libraries_dirs=lambda: ["/a b/lib"],
        get_use_relative_path=lambda: False,
        precompiled_header="/a b/h.h",
    )
    quote_paths(SimpleNamespace(CppBuilder=Builder, VecISA=SimpleNamespace(_avx_py_load="")))
    assert vars(Builder("k", ["/a b/k.cpp"], options)) == quoted
