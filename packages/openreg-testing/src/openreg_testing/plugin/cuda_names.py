# SPDX-License-Identifier: BSD-3-Clause
"""``--cuda-as``: Python code that names "cuda" runs on another accelerator, and reads the name "cuda" back.

``torch.device("cuda")`` is unchanged, because PyTorch creates such an object without a GPU. Its uses are translated:

- A ``TorchFunctionMode`` translates cuda to the accelerator in the arguments of every function of PyTorch that takes
  or creates tensors. It translates the results ``x.device``, ``x.is_cuda`` and ``x.type()`` back.
- ``torch.cuda`` gets the functions and classes of the accelerator's module for each name that both modules have.
- Other functions and classes that use devices are replaced one by one: ``torch.autocast``, ``torch.Generator``,
  ``torch.Stream``, ``torch.Event``, ``torch.load``, ``torch.accelerator``, default devices, storages.

A mode belongs to one thread. So threads of ``threading.Thread`` that start meanwhile enter it, too, and so does each
backward pass, because PyTorch disables the mode while it handles ``backward()``.

These cannot be translated, because no Python function is called that could be replaced:

- C++ and Triton code that names CUDA;
- features without a counterpart: CUDA IPC, NCCL, ``torch.nn.DataParallel``, ``torch.backends.cuda`` and ``cudnn``,
  ``torch.version.cuda`` (the last three correctly report that CUDA is absent);
- ``storage.device``, ``stream.device``, ``repr(tensor)`` and error messages, which name the accelerator;
- ``torch.compile`` for the accelerator, whose graphs contain the real device;
- processes that are started and not forked;
- classes derived from ``torch.Generator``, ``torch.Stream``, ``torch.Event`` or their names in ``torch.cuda``, if they
  are defined during the translation.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

__tracebackhide__ = True  # pytest omits frames of this module from tracebacks

_CUDA = re.compile(r"cuda(:\d+)?")
_MISSING = object()
# Private names of torch.cuda that PyTorch's code uses.
_PRIVATE = (
    "_exchange_device",
    "_get_generator",
    "_initialized",
    "_is_in_bad_fork",
    "_lazy_call",
    "_lazy_init",
    "_maybe_exchange_device",
    "_sleep",
    "default_generators",
)
_AUTOCAST = (
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
)


def activate(device_type: str, option: str) -> Callable[[], None]:
    """Begins the translation and returns a function that ends it and restores every replaced attribute.

    ``option`` is where the user named the accelerator. Raises UsageError on a machine that has a CUDA device, because
    the tests can run on that device.
    """
    import torch

    if torch.cuda.is_available():
        raise pytest.UsageError(
            f"{option} {device_type}: this machine has a CUDA device, on which code that names cuda can run; leave "
            "the option out, or hide the device: CUDA_VISIBLE_DEVICES="
        )
    translation = _Translation(device_type)
    translation.begin()
    return translation.end


class _Patches:
    """The replaced attributes and their original values."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replaces an attribute of a module or class."""
        self._before.append((owner, name, vars(owner).get(name, _MISSING)))
        setattr(owner, name, value)

    def undo(self) -> None:
        """Restores all replaced attributes, the last one first."""
        while self._before:
            owner, name, value = self._before.pop()
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


class _Translation:
    """The translation between the names of CUDA and those of an accelerator."""

    def __init__(self, device_type: str) -> None:
        import torch
        from torch.overrides import TorchFunctionMode

        self.torch = torch
        self.type = device_type
        self.module: Any = torch.get_device_module(device_type)
        self._patches = _Patches()
        self._local = threading.local()  # depth: the nested calls of the thread to code that sees the real names
        self._originals: dict[type, type] = {}  # the accelerator's class for each replacement class
        translation = self

        class CudaNames(TorchFunctionMode):
            """The mode that translates the arguments and results of functions of PyTorch."""

            def __torch_function__(
                self, function: Any, _types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
            ) -> Any:
                return translation.call(function, args, kwargs or {})

        self.mode: Any = CudaNames()
        tensor: Any = torch.Tensor
        # Functions whose device is not an ordinary argument or result, by the function object that the mode receives.
        self._special: dict[Any, Callable[..., Any]] = {
            tensor.cuda: self._cuda,
            tensor.is_cuda.__get__: lambda x: x.device.type == self.type,
            tensor.device.__get__: lambda x: self.outward(x.device),
            tensor.type: self._type,
        }

    # Names.

    def inward(self, value: Any) -> Any:
        """Returns an argument with names of CUDA translated to names of the accelerator."""
        if isinstance(value, self.torch.device):
            return self.torch.device(self.type, value.index) if value.type == "cuda" else value
        if isinstance(value, str):
            if _CUDA.fullmatch(value):
                return self.type + value[len("cuda") :]
            if value.startswith("torch.cuda."):
                return f"torch.{self.type}." + value[len("torch.cuda.") :]
        if isinstance(value, type):
            return self._originals.get(value, value)
        return value

    def outward(self, value: Any) -> Any:
        """Returns a result with the accelerator's device translated to cuda, except in the accelerator's own code."""
        if isinstance(value, self.torch.device) and value.type == self.type and not self._depth:
            return self.torch.device("cuda", value.index)
        return value

    def call(self, function: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """Calls a function of PyTorch with translated arguments; PyTorch disables the mode during the call."""
        if function is self.torch.device:  # keeps names as they are; a number means a device of the accelerator
            made = function(*args, **kwargs)
            return self.outward(made) if args and isinstance(args[0], int) else made
        args = [self.inward(value) for value in args]
        kwargs = {name: self.inward(value) for name, value in kwargs.items()}
        return self._special.get(function, function)(*args, **kwargs)

    def _cuda(self, x: Any, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        return x.to(self._accelerator(device), non_blocking=non_blocking, **kwargs)

    def _accelerator(self, device: Any) -> Any:
        """Returns the accelerator with the index of a device or number, by default the current one."""
        index = device if isinstance(device, int) or device is None else self.torch.device(device).index
        return self.torch.device(self.type, self.module.current_device() if index is None else index)

    def _type(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        result = x.type(*args, **kwargs)
        return result.replace(f"torch.{self.type}.", "torch.cuda.") if isinstance(result, str) else result

    def translated(self, original: Any) -> Any:
        """Returns a wrapper of a function or class of the accelerator that accepts names of CUDA.

        Other objects are returned unchanged.
        """
        if isinstance(original, type):
            return self._class(original)
        if not callable(original):
            return original

        @functools.wraps(original)
        def function(*args: Any, **kwargs: Any) -> Any:
            return self._call_with_real_names(original, args, kwargs)

        return function

    def _call_with_real_names(self, original: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """Calls a function of the accelerator, which sees the accelerator's name, and translates the result."""
        args = [self.inward(value) for value in args]
        kwargs = {name: self.inward(value) for name, value in kwargs.items()}
        self._local.depth = self._depth + 1
        try:
            with self.torch._C.DisableTorchFunction():
                result = original(*args, **kwargs)
        finally:
            self._local.depth -= 1
        return self.outward(result)

    @property
    def _depth(self) -> int:
        return getattr(self._local, "depth", 0)

    def _class(self, original: Any) -> Any:
        """Returns a class that makes instances of ``original``, and that ``isinstance`` treats as ``original``."""
        really = self._call_with_real_names

        def instance_of(instance: object, expected: type) -> bool:
            return isinstance(instance, expected)

        class Named(type):
            """The metaclass of replacement classes, which forwards their uses to the original class."""

            def __call__(cls, *args: Any, **kwargs: Any) -> Any:
                return really(original, args, kwargs)

            def __instancecheck__(cls, instance: object) -> bool:
                return bool(really(instance_of, (instance, original), {}))

            def __subclasscheck__(cls, subclass: type) -> bool:
                return subclass is cls or issubclass(subclass, original)

            def __getattr__(cls, name: str) -> Any:
                return getattr(original, name)

        namespace = {"__doc__": original.__doc__, "__module__": original.__module__}
        named = Named(original.__name__, (), namespace)
        self._originals[named] = original
        return named

    # Beginning and end.

    def begin(self) -> None:
        """Replaces the functions and classes, and enters the mode in this thread."""
        try:
            self._translate_module()
            self._translate_constructors()
            self._translate_autocast()
            self._translate_loading()
            self._translate_accelerator()
            self._follow_threads()
            self._follow_saved_tensors()
        except BaseException:
            self._patches.undo()
            raise
        self.mode.__enter__()

    def end(self) -> None:
        """Leaves the mode and restores the functions and classes."""
        self.mode.__exit__(None, None, None)
        self._patches.undo()

    def _translate_module(self) -> None:
        cuda: Any = self.torch.cuda
        names = [name for name in (*cuda.__all__, *_PRIVATE) if hasattr(self.module, name)]
        names += [name for name in dir(cuda) if name.endswith("Tensor") and hasattr(self.module, name)]
        submodules = [cuda.memory, cuda.random, cuda.streams]
        for name in dict.fromkeys(names):
            original, ours = getattr(cuda, name), getattr(self.module, name)
            if isinstance(ours, ModuleType):
                continue
            value = self.translated(ours)
            self._patches.set(cuda, name, value)
            for submodule in submodules:
                if vars(submodule).get(name, _MISSING) is original:
                    self._patches.set(submodule, name, value)
        for name, replacement in self._adapted().items():
            self._patches.set(cuda, name, replacement)
        for name in ("range_push", "range_pop", "range_start", "range_end", "mark"):  # annotations for a profiler
            self._patches.set(cuda.nvtx, name, lambda *_args, **_kwargs: 0)
        # For a cuda tensor the original warns that there is no cuDNN before it returns False.
        self._patches.set(self.torch.backends.cudnn, "is_acceptable", lambda _tensor: False)

    def _adapted(self) -> dict[str, Any]:
        """Returns replacements of functions of ``torch.cuda`` whose counterparts have other arguments or results."""
        properties = getattr(self.module, "get_device_properties", None)
        bf16 = getattr(self.module, "is_bf16_supported", None)
        found: dict[str, Any] = {"get_arch_list": list}

        def get_device_properties(device: Any = None) -> Any:
            described = self._call_with_real_names(properties, (device,), {})
            if not hasattr(described, "_asdict"):
                return described
            # If torch.version.cuda is None, PyTorch's compiler assumes an AMD device and reads its architecture.
            return SimpleNamespace(**described._asdict(), gcnArchName=described.name)

        def get_device_capability(device: Any = None) -> tuple[int, int]:
            described = self._call_with_real_names(properties, (device,), {})
            return described.major, described.minor

        if properties is not None:
            found["get_device_capability"] = get_device_capability
            found["get_device_properties"] = get_device_properties
        if bf16 is not None:
            found["is_bf16_supported"] = lambda including_emulation=True: bf16()  # noqa: ARG005
        if hasattr(self.module, "Graph"):
            found["CUDAGraph"] = self.translated(self.module.Graph)
        return found

    def _translate_constructors(self) -> None:
        from torch.utils import _device as default

        for name in ("Generator", "Stream", "Event"):
            self._patches.set(self.torch, name, self.translated(getattr(self.torch, name)))
        self._first_argument_inward(default.DeviceContext, "__init__")
        get_default_device = self.torch.get_default_device
        self._patches.set(self.torch, "get_default_device", lambda: self.outward(get_default_device()))

    def _first_argument_inward(self, owner: Any, name: str) -> None:
        """Translates the first argument of a method."""
        original = vars(owner)[name]

        @functools.wraps(original)
        def method(this: Any, first: Any, *args: Any, **kwargs: Any) -> Any:
            return original(this, self.inward(first), *args, **kwargs)

        self._patches.set(owner, name, method)

    def _translate_autocast(self) -> None:
        from torch.amp import autocast_mode

        original = autocast_mode.autocast.__init__

        @functools.wraps(original)
        def init(this: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
            original(this, self.inward(device_type), *args, **kwargs)

        self._patches.set(autocast_mode.autocast, "__init__", init)
        for name in _AUTOCAST:
            for owner in (self.torch, self.torch.amp, autocast_mode):
                if callable(getattr(owner, name, None)):
                    self._patches.set(owner, name, self._of_autocast(getattr(owner, name)))

    def _of_autocast(self, original: Any) -> Any:
        @functools.wraps(original)
        def function(*args: Any, **kwargs: Any) -> Any:
            named = bool(args) and isinstance(args[0], str)
            if not named and "device_type" not in kwargs:
                args = ("cuda", *args)  # the default of these functions
            return self._call_with_real_names(original, args, kwargs)

        return function

    def _translate_loading(self) -> None:
        storage = self.torch.storage
        load = self.torch.load

        def to_accelerator(this: Any, device: Any = None, non_blocking: bool = False) -> Any:
            return this.to(device=self._accelerator(device), non_blocking=non_blocking)

        def moved(stored: Any, location: str) -> Any:
            """Moves a storage that was saved from cuda; returns None for others, which PyTorch then loads."""
            return stored.to(device=self.torch.device(self.inward(location))) if _CUDA.fullmatch(location) else None

        @functools.wraps(load)
        def load_here(file: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
            if map_location is None:
                map_location = moved
            elif isinstance(map_location, dict):
                map_location = {name: self.inward(place) for name, place in map_location.items()}
                # Files saved in this run name the accelerator, which the program calls cuda.
                map_location.update({self.inward(name): place for name, place in map_location.items()})
            return load(file, self.inward(map_location), *args, **kwargs)

        for owner in (storage._StorageBase, storage.TypedStorage):
            self._patches.set(owner, "cuda", to_accelerator)
        self._patches.set(self.torch, "load", load_here)
        self._patches.set(self.torch.serialization, "load", load_here)

    def _translate_accelerator(self) -> None:
        accelerator: Any = self.torch.accelerator
        for name in accelerator.__all__:
            original = getattr(accelerator, name)
            if callable(original) and not isinstance(original, type):
                self._patches.set(accelerator, name, self.translated(original))

    def _follow_threads(self) -> None:
        """Makes new threads and backward passes run inside the mode."""
        from torch import autograd

        start, run_backward = threading.Thread.start, autograd.graph._engine_run_backward

        @functools.wraps(start)
        def start_inside(thread: threading.Thread) -> None:
            run = thread.run

            def run_inside() -> None:
                with self.mode:
                    run()

            thread.run = run_inside  # type: ignore[method-assign]
            start(thread)

        @functools.wraps(run_backward)
        def run_backward_inside(*args: Any, **kwargs: Any) -> Any:
            with self._inside():
                return run_backward(*args, **kwargs)

        self._patches.set(threading.Thread, "start", start_inside)
        # The mode is disabled while it handles backward(), and the threads of the pass inherit the modes of its start.
        for owner in (autograd, autograd.graph):
            self._patches.set(owner, "_engine_run_backward", run_backward_inside)

    def _follow_saved_tensors(self) -> None:
        """Makes hooks of saved tensors run inside the mode, which is disabled while an operator calls them."""
        hooks = self.torch.autograd.graph.saved_tensors_hooks
        original = vars(hooks)["__init__"]

        def inside(hook: Any) -> Any:
            @functools.wraps(hook)
            def called(value: Any) -> Any:
                with self._inside():
                    return hook(value)

            return called

        @functools.wraps(original)
        def init(this: Any, pack_hook: Any, unpack_hook: Any) -> None:
            original(this, inside(pack_hook), inside(unpack_hook))

        self._patches.set(hooks, "__init__", init)

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """Returns a context manager that enters the mode, unless this thread is inside of it."""
        from torch.overrides import _get_current_function_mode_stack

        if self.mode in _get_current_function_mode_stack():  # type: ignore[no-untyped-call]
            yield
        else:
            with self.mode:
                yield
