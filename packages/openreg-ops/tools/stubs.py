# SPDX-License-Identifier: BSD-3-Clause
"""Lists the stubs of the installed PyTorch for which a backend can register a kernel.

usage: python packages/openreg-ops/tools/stubs.py    prints stub, operator and function to register, separated by tabs

A stub is a DECLARE_DISPATCH in the headers under ATen/native. It can be registered from outside of PyTorch when its
symbol is exported by libtorch_cpu, because REGISTER_PRIVATEUSE1_DISPATCH stores the kernel in the stub itself.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

TORCH = Path(torch.__file__).resolve().parent
INCLUDE = TORCH / "include"

DECLARATION = re.compile(r"^\s*DECLARE_DISPATCH\s*\(", re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# What the names of stubs end in, besides the operator that they serve.
SUFFIXES = ("_stub", "_cpu", "_kernel", "_tensor", "_scalar", "_default", "_fn")
# What the operator that comes to the device is called where another, above it, has the plain name.
PATTERNS = (
    *("{}", "_{}", "{}_", "_{}_", "native_{}", "_linalg_{}", "linalg_{}", "{}_forward", "_{}_forward"),
    *("{}_with_indices", "_{}_kernel", "_{}_interface", "_{}_impl_"),
)
# Stubs whose names do not tell. max_pool1d_stub is not among them: the operator that calls it is taken apart.
NAMED_OTHERWISE = {
    "orgqr_stub": "linalg_householder_product",
    "histogramdd_stub": "_histogramdd_from_bin_cts",
    "max_pool2d_backward_kernel": "max_pool2d_with_indices_backward",
    "prelu_backward_stub": "_prelu_kernel_backward",
}


@dataclass(frozen=True)
class Stub:
    """One stub: its name in at::native (with any namespace below), the type of its function, the header."""

    name: str
    function: str
    header: str

    @property
    def symbol(self) -> str:
        """The name that the linker knows."""
        return f"_ZN2at6native{''.join(f'{len(part)}{part}' for part in self.name.split('::'))}E"

    @property
    def base(self) -> str:
        """The name without namespaces."""
        return self.name.rpartition("::")[2]


def split_arguments(text: str, start: int) -> tuple[str, str]:
    """The two arguments of the macro whose parenthesis opens before `start`."""
    depth, commas, end = 1, [], start
    while depth:
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(text[end], 0)
        if text[end] == "," and depth == 1:
            commas.append(end)
        end += 1
    return text[start : commas[-1]].strip(), text[commas[-1] + 1 : end - 1].strip()


def function_type(text: str, name: str) -> str:
    """What a name of a function type stands for in a header; the name itself where it is no alias."""
    alias = re.search(rf"\busing\s+{re.escape(name)}\s*=\s*([^;]+);", text)
    return " ".join((alias.group(1) if alias else name).split()).replace("( ", "(").replace(" )", ")")


def namespace_at(text: str, end: int) -> str:
    """The namespaces that are open at a place of a header; inline ones are left out."""
    opened: list[str] = []
    for brace in re.finditer(r"(\binline\s+)?\bnamespace\s+([\w:]+)\s*\{|[{}]", text[:end]):
        if brace.group() == "}":
            opened.pop()
        else:
            opened.append("" if brace.group(1) else brace.group(2) or "")
    return "::".join(filter(None, opened))


def stubs_in(header: Path) -> Iterator[Stub]:
    """The stubs that one header declares."""
    text = COMMENT.sub("", header.read_text("utf-8"))
    for declaration in DECLARATION.finditer(text):
        function, name = split_arguments(text, declaration.end())
        place = namespace_at(text, declaration.start()).removeprefix("at::native").removeprefix("::")
        name = f"{place}::{name}" if place else name
        yield Stub(name, function_type(text, function), header.relative_to(INCLUDE).as_posix())


def all_stubs() -> list[Stub]:
    """The stubs of the installed headers, by header and place."""
    headers = sorted((INCLUDE / "ATen" / "native").rglob("*.h"))
    return [stub for path in headers if path.name != "DispatchStub.h" for stub in stubs_in(path)]


def library() -> ctypes.CDLL:
    """libtorch_cpu, which is loaded already."""
    (path,) = (
        path for path in (TORCH / "lib").iterdir() if re.fullmatch(r"(lib)?torch_cpu\.(so|dylib|dll)", path.name)
    )
    return ctypes.CDLL(str(path))


def exported(stubs: list[Stub]) -> set[str]:
    """Names of the stubs that an extension can link to."""
    loaded = library()
    return {stub.name for stub in stubs if hasattr(loaded, stub.symbol)}


def operators() -> tuple[set[str], set[str]]:
    """Names of PyTorch's operators that a call on a device comes to: with a kernel per device, with one for all.

    An operator that is taken apart above the device (CompositeImplicitAutograd) is neither: a kernel for a device would
    take its derivative away. Nor is one that exists only as the generated `out=` form of another.
    """
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    per_device, for_all = set(), set()
    for name in torch._C._dispatch_get_all_op_names():  # type: ignore[attr-defined, unused-ignore]
        operator, _, overload = name.removeprefix("aten::").partition(".")
        if not name.startswith("aten::"):
            continue
        if has(name, "CPU"):
            per_device.add(operator)
        elif has(name, "CompositeExplicitAutograd") and not overload.endswith("out"):
            for_all.add(operator)
    return per_device, for_all - per_device


def candidates(name: str) -> Iterator[str]:
    """What the operator of a stub may be called, the likeliest first."""
    yield from (pattern.format(name) for pattern in PATTERNS)
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            yield from candidates(name.removesuffix(suffix))


def operator_of(stub: Stub, known: tuple[set[str], ...]) -> str | None:
    """The operator that calls the stub and comes to the device, if PyTorch has one of about its name."""
    if stub.name in NAMED_OTHERWISE:
        return NAMED_OTHERWISE[stub.name]
    if stub.name.startswith("cpublas::"):  # functions on addresses, below any operator
        return None
    snake_case = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stub.base).lower()
    return next((name for names in known for name in candidates(snake_case) if name in names), None)


def entry_of(operator: str) -> str:
    """The function of at::native that checks operands and calls the stub, where the headers tell."""
    header = INCLUDE / "ATen" / "ops" / f"{operator.removesuffix('_')}_native.h"
    text = header.read_text("utf-8") if header.is_file() else ""
    structured = re.search(r"\bstruct TORCH_API (structured_\w+)", text)
    if structured:
        return f"{structured.group(1)}::impl"
    names = re.findall(r"TORCH_API [^(\n]*?\b(\w+)\(", text)
    return next((name for name in (f"{operator}_out", operator, f"{operator}_") if name in names), "")


@dataclass(frozen=True)
class StubRow:
    """A row of the list: a stub, and what calls it. A field is empty if the headers do not contain the information."""

    stub: Stub
    is_exported: bool
    operator: str
    called_by: str


def rows() -> list[StubRow]:
    """Returns the list of all stubs of the installed PyTorch, ordered by header and place."""
    stubs, known = all_stubs(), operators()
    linkable = exported(stubs)
    named = [(stub, operator_of(stub, known) or "") for stub in stubs]
    return [StubRow(stub, stub.name in linkable, name, entry_of(name) if name else "") for stub, name in named]


def registrations(stubs: list[Stub]) -> str:
    """A C++ source that registers a kernel for each stub; its register_all() gives how many then had theirs."""
    # A few headers give different types one name and cannot be included together; here each gets names of its own.
    includes = "".join(
        f"#define forward_fn forward_fn_{i}\n#define backward_fn backward_fn_{i}\n#include <{header}>\n"
        "#undef forward_fn\n#undef backward_fn\n"
        for i, header in enumerate(dict.fromkeys(stub.header for stub in stubs))
    )
    lines = "".join(f"  check<{stub.name}_DECLARE_DISPATCH_type>({stub.name});\n" for stub in stubs)
    return f"""\
#include <ATen/core/Tensor.h>
#include <ATen/TensorIterator.h>

#include <algorithm>
#include <cstring>
#include <iterator>

{includes}
namespace at::native {{
namespace {{

int registered = 0;

template <class T>
struct Kernel;
template <class Result, class... Args>
struct Kernel<Result (*)(Args...)> {{
  static Result call(Args...) {{ throw 0; }}
}};

// Whether the kernel is in the stub after the registration, and was not before.
template <class Stub>
void check(Stub& stub) {{
  const auto kernel = reinterpret_cast<void*>(&Kernel<typename Stub::FnPtr>::call);
  const auto holds = [&] {{
    void* words[sizeof(Stub) / sizeof(void*)];
    std::memcpy(words, &stub, sizeof(words));
    return std::count(std::begin(words), std::end(words), kernel) == 1;
  }};
  const bool before = holds();
  const RegisterPRIVATEUSE1Dispatch<Stub> registration(stub, &Kernel<typename Stub::FnPtr>::call);
  registered += !before && holds();
}}

}}  // namespace

extern "C" int register_all() {{
{lines}  return registered;
}}

}}  // namespace at::native
"""


def main() -> None:
    """Prints the stubs that can be registered."""
    for row in rows():
        if row.is_exported:
            print(row.stub.name, row.operator, row.called_by, sep="\t")


if __name__ == "__main__":
    main()
