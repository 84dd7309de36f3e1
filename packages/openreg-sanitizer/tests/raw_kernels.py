# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that get addresses, launched through the table for generated code (openreg/runtime/launch_entry.h).

Such a kernel can do what no operator does: write beyond its operand, or use an address whose tensor is gone.
"""

import ctypes
from ctypes import c_char_p, c_int, c_size_t, c_ssize_t, c_uint, c_void_p

import openreg_runtime

READ, WRITE = 1, 2  # orAccess
KernelFunction = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)
_keep = []  # a graph may run a kernel again at any time


class Operand(ctypes.Structure):
    """orOperand."""

    _fields_ = (("address", c_void_p), ("size", c_size_t), ("access", c_int))


class Launch(ctypes.Structure):
    """orLaunch."""

    _fields_ = (
        ("size", c_size_t),
        ("stream", c_void_p),
        ("device", c_int),
        ("name", c_char_p),
        ("function", KernelFunction),
        ("arguments", c_void_p),
        ("arguments_size", c_size_t),
        ("arguments_alignment", c_size_t),
        ("operands", ctypes.POINTER(Operand)),
        ("operand_count", c_size_t),
    )


class Table(ctypes.Structure):
    """orLaunchEntry, without its last member."""

    _fields_ = (
        ("size", c_size_t),
        ("version", c_uint),
        ("kernel_view_offset", c_ssize_t),
        ("launch", ctypes.CFUNCTYPE(c_int, ctypes.POINTER(Launch))),
        ("operands_wanted", ctypes.CFUNCTYPE(c_int)),
    )


def table():
    return Table.from_address(openreg_runtime.launch_entry().address)


def launch(name, body, *operands):
    """Launches ``body()`` on the current stream; the operands are tuples (address, bytes, access)."""

    def run(_arguments, _message, _size):
        body()
        return 0

    function = KernelFunction(run)
    ranges = (Operand * len(operands))(*operands)
    order = Launch(ctypes.sizeof(Launch), None, -1, name.encode(), function, None, 0, 0, ranges, len(operands))
    _keep.append((function, order.name))
    table().operands_wanted()  # the time at which observers take the stack
    assert table().launch(ctypes.byref(order)) == 0


def fill(tensor, count, byte=1):
    """Launches a kernel whose operand is ``tensor``, and which writes ``count`` bytes from its beginning on."""
    view = tensor.data_ptr() + table().kernel_view_offset
    launch("fill", lambda: ctypes.memset(view, byte, count), (tensor.data_ptr(), tensor.nbytes, WRITE))


def read(address, size):
    """Launches a kernel that reads ``size`` bytes at an address."""
    view = address + table().kernel_view_offset
    launch("read", lambda: ctypes.string_at(view, size), (address, size, READ))
