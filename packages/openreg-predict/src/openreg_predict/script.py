# SPDX-License-Identifier: BSD-3-Clause
"""Runs a user's script on PyTorch's device ``meta`` and records its operators.

Each device that the script names becomes meta. To run a script on the openreg device, ``OnOpenreg`` replaces the
accelerators that it names.

A script with a function ``step()`` is executed as a module. The second call of ``step()`` is the program, because the
first one allocates gradients and optimizer states. Any other script is recorded as a whole, as ``__main__``.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors

from openreg_predict import autocast
from openreg_predict.trace import Program, TraceError, collect, recording, trace

STEP = "step"  # the name of the function that is recorded
_OWN = f"{__package__}."  # the start of the names of this package's modules
# Modules of data loaders, whose tensors stay on the host.
_HOST_MODULES = ("torch.utils.data.sampler", "torch.utils.data.dataloader", "torch.utils.data._utils.worker")
_MOVES = ("cuda", "xpu", "npu", "hpu")  # methods that move a tensor to another accelerator than openreg
_DEVICE = re.compile(r"(cuda|openreg|cpu|xpu|mps|npu|hpu|privateuseone)(:\d+)?")


class ScriptError(ValueError):
    """An error of a script that cannot be run. The message names its path and a workaround, if there is one."""


class MetaDeviceMode(TorchFunctionMode):
    """A mode that creates tensors on meta and keeps them there, whatever device a call names.

    Tensors with which a data loader selects samples stay on the host, because the loader reads their values.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Calls the function with meta in place of other devices."""
        if _caller().startswith(_HOST_MODULES):
            return func(*args, **(kwargs or {}))
        changed = dict(kwargs or {})
        if changed.get("device") is not None or func in _device_constructors():
            # A tensor of a number, such as an optimizer's step count, stays on the host and keeps its value, as it does
            # in a program on a real device.
            is_on_host = str(changed.get("device", "cpu")) in ("cpu", "None")
            data = args[0] if args else changed.get("data")
            is_number = func is torch.tensor and is_on_host and isinstance(data, (int, float))
            changed["device"] = "cpu" if is_number else "meta"
        changed.pop("pin_memory", None)
        name = getattr(func, "__name__", "")
        if name in (*_MOVES, "openreg", "cpu", "pin_memory") and args and isinstance(args[0], torch.Tensor):
            return args[0]
        if name == "to":
            args = tuple("meta" if _is_device(item) else item for item in args)
        return func(*args, **changed)


class OnOpenreg(TorchFunctionMode):
    """A mode that replaces the accelerators that a script names by the openreg device. The CPU stays the CPU."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Calls the function with the openreg device in place of other accelerators."""
        if getattr(func, "__name__", "") in _MOVES and args and isinstance(args[0], torch.Tensor):
            return args[0].to("openreg")
        changed = {name: _on_openreg(value) for name, value in (kwargs or {}).items()}
        return func(*map(_on_openreg, args), **changed)


def _on_openreg(item: Any) -> Any:
    """Returns "openreg" for the name of another accelerator, and any other item unchanged."""
    return "openreg" if _is_device(item) and str(item).partition(":")[0] not in ("cpu", "openreg") else item


def _caller() -> str:
    """Returns the name of the module that calls a function of PyTorch. Frames of this package are skipped."""
    frame: FrameType | None = sys._getframe(2)
    name = ""
    while frame is not None and (name := str(frame.f_globals.get("__name__", ""))).startswith(_OWN):
        frame = frame.f_back
    return name


def _is_device(item: object) -> bool:
    """Returns True for a torch.device or the name of one."""
    return isinstance(item, torch.device) or (isinstance(item, str) and _DEVICE.fullmatch(item) is not None)


def load(path: str | Path, values: Mapping[str, object] | None = None) -> tuple[Any, bool]:
    """Returns the compiled script, and True if it has a function ``step()``.

    ``values`` replaces the value in the first plain assignment ``name = ...`` of each name at the top level of the
    script. Raises :class:`ScriptError` if the file cannot be read or is no Python, or if the script has no such
    assignment for a name of ``values``.
    """
    path = Path(path)
    try:
        tree = ast.parse(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError) as error:
        raise ScriptError(f"{path} cannot be run: {error}") from error
    left = dict(values or {})  # names whose assignment has not been found so far
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in left:
                node.value = ast.copy_location(_expression(left.pop(name)), node.value)
    if left:
        raise ScriptError(
            f"{path} has no plain assignment to {', '.join(left)} at its top level; write for example "
            f"{next(iter(left))} = 1"
        )
    has_step = any(isinstance(node, ast.FunctionDef) and node.name == STEP for node in tree.body)
    return compile(ast.fix_missing_locations(tree), str(path), "exec"), has_step


def _expression(value: object) -> ast.expr:
    """Returns the expression of a value that :func:`ast.literal_eval` has returned. Its source is its ``repr()``."""
    if isinstance(value, (list, tuple, dict, set)):
        return ast.parse(repr(value), mode="eval").body
    return ast.Constant(value)  # type: ignore[arg-type]


def program_of(path: str | Path, values: Mapping[str, object] | None = None, assume: float | None = None) -> Program:
    """Runs a script on meta and returns its program.

    ``values`` is that of :func:`load`, and ``assume`` replaces values that the script reads from tensors. Raises
    :class:`ScriptError` if the script fails, and :class:`TraceError` if an operator cannot run on meta.
    """
    code, has_step = load(path, values)
    space: dict[str, Any] = {"__name__": "openreg_predict_script" if has_step else "__main__", "__file__": str(path)}
    folder = str(Path(path).resolve().parent)
    sys.path.insert(0, folder)
    notes: list[str] = []
    try:
        with MetaDeviceMode(), autocast.emulated(), _uncompiled(notes):
            if not has_step:
                with recording("meta", assume) as (recorder, memory):
                    _run(path, lambda: exec(code, space))
                program = collect(recorder, memory)
            else:
                _run(path, lambda: exec(code, space))
                found: list[Program] = []
                _run(path, lambda: found.append(trace(space[STEP], assume)))
                program = found[0]
    finally:
        sys.path.remove(folder)
    program.notes += notes
    return program


@contextmanager
def _uncompiled(notes: list[str]) -> Iterator[None]:
    """Makes ``torch.compile`` return its argument and adds a note, because the generated kernels are not known."""
    function, method = torch.compile, torch.nn.Module.compile

    def note() -> None:
        text = "predicted without torch.compile: which kernels it would generate is not known"
        if text not in notes:
            notes.append(text)

    def compile_function(model: Any = None, **options: Any) -> Any:
        del options
        note()
        return model if model is not None else lambda decorated: decorated

    def compile_module(module: Any, *args: Any, **options: Any) -> None:
        del module, args, options
        note()

    torch.compile, torch.nn.Module.compile = compile_function, compile_module  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.compile, torch.nn.Module.compile = function, method  # type: ignore[method-assign]


def _run(path: str | Path, call: Callable[[], object]) -> None:
    """Calls a part of the script. Raises ScriptError for an error in it, and passes on a TraceError."""
    try:
        call()
    except TraceError:
        raise
    except SystemExit as error:
        if error.code not in (None, 0):
            raise ScriptError(f"{path} ended with the status {error.code}") from error
    except Exception as error:
        raise ScriptError(
            f"{path} failed on meta, where tensors have no values: {type(error).__name__}: {error}"
        ) from error
