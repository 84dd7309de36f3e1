# SPDX-License-Identifier: BSD-3-Clause
"""Every function that PyTorch looks up in the device module exists and takes the arguments that PyTorch passes.

Behavior is tested in the file of each area; this table is the list of the readers' calls.
"""

import inspect
import types

import pytest
import torch

from openreg_runtime import openreg

pytestmark = pytest.mark.usefixtures("clean_device")

# Name -> positional arguments of each call in PyTorch's sources.
CALLS = {
    "_exchange_device": [(0,)],
    "_get_generator": [(torch.device("openreg:0"),)],
    "_is_in_bad_fork": [()],
    "_lazy_init": [()],
    "_maybe_exchange_device": [(-1,)],
    "_sleep": [(1000,)],
    "Event": [(), (True,)],
    "Stream": [(), (0,), (torch.device("openreg:1"), -1)],
    "current_device": [()],
    "current_stream": [(), (0,), (torch.device("openreg"),)],
    "default_stream": [(), (1,)],
    "device": [(0,), (torch.device("openreg:1"),), (None,), (-1,)],
    "device_count": [()],
    "empty_cache": [()],
    "get_device_capability": [(), (0,)],
    "get_device_name": [(), (0,)],
    "get_device_properties": [(), (0,)],
    "get_rng_state": [(), (0,), ("openreg:1",), (torch.device("openreg"),)],
    "is_available": [()],
    "is_initialized": [()],
    "manual_seed": [(1,)],
    "manual_seed_all": [(1,)],
    "memory_allocated": [(), (0,), (torch.device("openreg"),)],
    "memory_reserved": [(), (0,)],
    "memory_stats": [(), (0,)],
    "set_device": [(0,), ("openreg:0",), (torch.device("openreg:0"),)],
    "set_rng_state": [(torch.zeros(16, dtype=torch.uint8),), (torch.zeros(16, dtype=torch.uint8), "openreg:1")],
    "stream": [(None,)],
    "synchronize": [(), (0,), (torch.device("openreg:0"),), (None,)],
}

RESULTS = {
    "_is_in_bad_fork": bool,
    "_get_generator": torch.Generator,
    "Event": torch.Event,
    "Stream": torch.Stream,
    "current_device": int,
    "current_stream": torch.Stream,
    "default_stream": torch.Stream,
    "device_count": int,
    "get_rng_state": torch.Tensor,
    "is_available": bool,
    "is_initialized": bool,
    "memory_allocated": int,
    "memory_reserved": int,
    "memory_stats": dict,
}


@pytest.mark.parametrize("name", CALLS)
def test_pytorchs_calls_are_taken(name):
    for arguments in CALLS[name]:
        result = getattr(openreg, name)(*arguments)
        assert isinstance(result, RESULTS.get(name, object))


def test_the_keywords_that_pytorch_uses_are_taken():
    assert list(inspect.signature(openreg.set_rng_state).parameters) == ["new_state", "device"]
    assert inspect.signature(openreg.get_rng_state).parameters["device"].default == "openreg"
    assert openreg.Stream(device=0, priority=0).query()
    assert openreg.Event(enable_timing=True, blocking=False, interprocess=False).query()


@pytest.mark.covers("module._initialized", "module._lazy_init")
def test_initialized_is_a_live_value_not_a_function(succeed):
    assert isinstance(openreg._initialized, bool)
    succeed("""
        import torch, openreg_runtime
        assert torch.openreg._initialized is False
        torch.openreg._lazy_init()
        assert torch.openreg._initialized is True
    """)


@pytest.mark.covers("module.memory_stats")
def test_memory_statistics_have_the_keys_that_pytorch_reads():
    torch.UntypedStorage(8, device="openreg")
    assert {"num_alloc_retries", "active_bytes.all.current"} <= set(openreg.memory_stats())


def test_generators_can_be_indexed():
    assert openreg.default_generators[0].device == torch.device("openreg:0")


def test_the_streams_and_events_are_classes_that_others_may_derive_from():
    assert issubclass(openreg.Stream, torch.Stream)
    assert issubclass(openreg.Event, torch.Event)
    assert isinstance(openreg, types.ModuleType)


@pytest.mark.covers(
    "accelerator_hooks.deviceCount",
    "accelerator_hooks.setCurrentDevice",
    "accelerator_hooks.getCurrentDevice",
    "accelerator_hooks.exchangeDevice",
    "accelerator_hooks.maybeExchangeDevice",
)
@pytest.mark.parametrize(
    ("hook", "arguments", "result"),
    [
        ("_accelerator_hooks_device_count", (), 2),
        ("_accelerator_hooks_get_current_device", (), 0),
        ("_accelerator_hooks_exchange_device", (1,), 0),
        ("_accelerator_hooks_maybe_exchange_device", (-1,), 0),
        ("_accelerator_hooks_set_current_device", (1,), None),
    ],
)
def test_the_hooks_answer(hook, arguments, result):
    assert getattr(torch._C, hook)(*arguments) == result
