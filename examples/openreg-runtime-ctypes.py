# SPDX-License-Identifier: BSD-3-Clause
"""The device without PyTorch: its C API (openreg.h), driven through ctypes."""

import ctypes
import importlib.util
import time
from pathlib import Path

# find_spec() locates the package without importing it, so torch stays out of this process.
spec = importlib.util.find_spec("openreg_runtime")
(library,) = Path(spec.submodule_search_locations[0], "lib").glob("*openreg.*")
device = ctypes.CDLL(str(library))
device.orGetLastErrorMessage.restype = ctypes.c_char_p


def call(name, *arguments):
    """Calls a function of openreg.h; an error code ends the program with the device's own words."""
    if getattr(device, name)(*arguments) != 0:
        raise SystemExit(device.orGetLastErrorMessage().decode())


def out(kind, name, *arguments):
    """Calls a function whose first argument is where it writes its result; gives the result."""
    value = kind()
    call(name, ctypes.byref(value), *arguments)
    return value


# A kernel is a C function that runs on the device's engine. This one is Python, which is slow but shows everything.
KernelFunction = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)


class Kernel(ctypes.Structure):
    """orKernel."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", KernelFunction),
        ("state", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
    )


print(f"{out(ctypes.c_int, 'orGetDeviceCount').value} devices")

# Memory: the host copies through the API, a kernel works on the kernel view of the same bytes.
SIZE = 8
COUNT = ctypes.c_size_t(SIZE)  # ctypes would pass a plain int as C's int, which is narrower
address = out(ctypes.c_void_p, "orMalloc", COUNT)
offset = out(ctypes.c_ssize_t, "orGetKernelViewOffset").value
HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2
call("orMemcpy", address, bytes(range(SIZE)), COUNT, HOST_TO_DEVICE)


@KernelFunction
def double(_state, _message, _size):
    """Doubles every byte."""
    view = (ctypes.c_uint8 * SIZE).from_address(address.value + offset)
    for index in range(SIZE):
        view[index] *= 2
    return 0


# The device keeps the pointers to name and function: both live until the last launch, also of a graph, is complete.
kernel = Kernel(b"double", double, None, None)

# Launches return at once; the stream keeps the order, and the event tells when its place is reached.
stream = out(ctypes.c_void_p, "orStreamCreate")
event = out(ctypes.c_void_p, "orEventCreate")
begin = time.perf_counter()
call("orStreamDelay", stream, ctypes.c_uint64(50_000_000))
call("orLaunchKernel", stream, ctypes.byref(kernel))
call("orEventRecord", event, stream)
launched = time.perf_counter() - begin
call("orEventSynchronize", event)
finished = time.perf_counter() - begin
print(f"launched after {launched * 1e3:.2f} ms, finished after {finished * 1e3:.0f} ms")

# A graph records work once and launches it as often as wanted.
graph = ctypes.c_void_p()
call("orStreamBeginCapture", stream, 0)
call("orLaunchKernel", stream, ctypes.byref(kernel))
call("orStreamEndCapture", stream, ctypes.byref(graph))
for _ in range(2):
    call("orGraphLaunch", graph, stream)
call("orStreamSynchronize", stream)

result = ctypes.create_string_buffer(SIZE)
call("orMemcpy", result, address, COUNT, DEVICE_TO_HOST)
print(list(result.raw))
if list(result.raw) != [value * 8 for value in range(SIZE)]:
    raise SystemExit("WRONG: one launch and two of the graph multiply by 8")

# Errors are codes with a text that names the cause and the way out.
device.orFree(ctypes.c_void_p(1234))
print(device.orGetLastErrorMessage().decode())

call("orGraphDestroy", graph)
call("orEventDestroy", event)
call("orStreamDestroy", stream)
call("orFree", address)
