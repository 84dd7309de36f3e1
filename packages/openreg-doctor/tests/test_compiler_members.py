# SPDX-License-Identifier: BSD-3-Clause
"""The exercises of DeviceInterface report the members that a backend's interface inherits from it."""

from types import SimpleNamespace

import pytest
from torch._dynamo import device_interface

from openreg_doctor.probes.compiler import EXERCISES

ROW = next(row for row in EXERCISES if "is_dtype_supported" in row)
NAMES = ROW.partition(".")[2].split(", ")


def interface_without(*inherited):
    """A class with all members of the row except the inherited ones. As in PyTorch, one is a class method."""

    class Worker(device_interface.DeviceInterface.Worker):
        pass

    members = {"Worker": Worker}
    for name in NAMES:
        if name in inherited:
            continue
        if name == "is_dtype_supported":
            members[name] = classmethod(lambda cls, dtype: True)
        elif name.startswith("Worker."):
            setattr(Worker, name.partition(".")[2], staticmethod(lambda: 0))
        else:
            members[name] = staticmethod(lambda: 0)
    return type("ToasterInterface", (device_interface.DeviceInterface,), members)


def exercise(monkeypatch, interface):
    monkeypatch.setattr(device_interface, "get_interface_for_device", lambda name: {"toaster": interface}[name])
    EXERCISES[ROW](SimpleNamespace(name="toaster"))


def test_an_interface_with_all_members_passes(monkeypatch):
    exercise(monkeypatch, interface_without())


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("is_dtype_supported", id="class method"),
        pytest.param("is_triton_capable", id="static method"),
        pytest.param("Worker.set_device", id="nested class"),
    ],
)
def test_an_inherited_member_is_reported_alone(monkeypatch, name):
    with pytest.raises(NotImplementedError, match=rf"ToasterInterface.* raise or return a default: {name}$"):
        exercise(monkeypatch, interface_without(name))
