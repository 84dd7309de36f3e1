# SPDX-License-Identifier: BSD-3-Clause
"""The list of stubs has all stubs of the installed PyTorch, and those that it marks can be registered."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from _platform import IS_LINUX

pytestmark = pytest.mark.skipif(not IS_LINUX, reason="the list says what the library for Linux exports")

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "stubs.py"


@pytest.fixture(scope="module")
def stubs():
    spec = importlib.util.spec_from_file_location("stubs", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["stubs"] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules["stubs"]


def test_every_declaration_of_the_headers_is_listed(stubs):
    headers = stubs.INCLUDE.glob("ATen/native/**/*.h")
    words = [path.read_text("utf-8").split("DECLARE_DISPATCH(") for path in headers if path.name != "DispatchStub.h"]
    names = {piece.partition(")\n")[0].rpartition(",")[2].strip(" )\n") for parts in words for piece in parts[1:]}
    assert {stub.base for stub in stubs.all_stubs()} == {name.partition(")")[0] for name in names}


def comes_to_the_device(operator):
    """Whether some overload's kernel for the device is its own, the fallback, or one for all devices."""
    overloads = getattr(torch.ops.aten, operator).overloads()
    names = [f"aten::{operator}.{name}".removesuffix(".default") for name in overloads]
    tables = map(torch._C._dispatch_dump_table, names)
    entries = [line for table in tables for line in table.splitlines() if line.startswith("PrivateUse1:")]
    return any(not entry.endswith("[math kernel]") for entry in entries)


def test_every_operator_of_the_list_comes_to_the_device(stubs):
    listed = {row.operator for row in stubs.rows()} - {""}
    assert {"native_layer_norm", "native_layer_norm_backward", "native_group_norm", "_softmax", "uniform_"} <= listed
    assert [operator for operator in sorted(listed) if not comes_to_the_device(operator)] == []
    assert not comes_to_the_device("layer_norm")


def test_a_row_names_the_function_to_register(stubs):
    rows = {row.stub.name: row for row in stubs.rows()}
    assert rows["abs_stub"].is_exported
    assert (rows["abs_stub"].operator, rows["abs_stub"].called_by) == ("abs", "abs_out")
    assert rows["elu_stub"].called_by == "structured_elu_out::impl"


def test_what_the_symbols_look_like(stubs):
    known = {stub.name: stub for stub in stubs.all_stubs()}
    assert known["abs_stub"].symbol == "_ZN2at6native8abs_stubE"
    assert known["abs_stub"].function == "void(*)(TensorIteratorBase&)"
    assert known["cpublas::gemm_stub"].symbol == "_ZN2at6native7cpublas9gemm_stubE"
    assert "abs_stub" in stubs.exported(list(known.values()))
    assert not hasattr(stubs.library(), stubs.Stub("no_such_stub", "void (*)()", "x.h").symbol)


# The kinds of kernels that a backend begins with. What a compiler makes of all headers takes four times as long.
FEW = {f"ATen/native/{name}.h" for name in ("Activation", "BinaryOps", "UnaryOps", "layer_norm")}


@pytest.mark.parametrize(
    ("headers", "least"), [(FEW, 100), pytest.param(None, 400, marks=pytest.mark.endurance)], ids=["few", "all"]
)
def test_every_stub_that_is_marked_so_can_be_registered(stubs, run_python, tmp_path, headers, least):
    compiler = shutil.which(os.environ.get("CXX", "c++")) or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler: set CXX")
    chosen = [stub for stub in stubs.all_stubs() if headers is None or stub.header in headers]
    linkable = stubs.exported(chosen)
    source, library = tmp_path / "registrations.cpp", tmp_path / "registrations"
    source.write_text(stubs.registrations([stub for stub in chosen if stub.name in linkable]))
    abi = int(torch._C._GLIBCXX_USE_CXX11_ABI)
    command = [
        *(compiler, "-std=c++20", "-O0", "-w", "-fPIC", "-shared", f"-D_GLIBCXX_USE_CXX11_ABI={abi}"),
        *(f"-I{stubs.INCLUDE}", str(source), "-o", str(library)),
        *(f"-L{stubs.TORCH / 'lib'}", "-ltorch_cpu", "-lc10"),
    ]
    compiled = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert compiled.returncode == 0, compiled.stderr[-2000:]
    # In a process of its own: the kernels do nothing but fail.
    ran = run_python(f"import ctypes, os, torch; print(ctypes.CDLL({str(library)!r}, os.RTLD_NOW).register_all())")
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert int(ran.stdout) == len(linkable) > least
