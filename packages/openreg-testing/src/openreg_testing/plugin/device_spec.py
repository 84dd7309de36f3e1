# SPDX-License-Identifier: BSD-3-Clause
"""The device specification of a test run, which transformers and diffusers read.

The variable ``*_TEST_DEVICE_SPEC`` contains the path of this file, and only these libraries import it. It is a fixed
file instead of one written for each run, because processes that tests start inherit the variable and need the file.
"""

import os

import torch

DEVICE_NAME = os.environ["OPENREG_TEST_DEVICE"]

_device = torch.get_device_module(torch.device(DEVICE_NAME))

MANUAL_SEED_FN = torch.manual_seed
DEVICE_COUNT_FN = _device.device_count
SUPPORTS_TRAINING = True

# A backend need not have a caching allocator.
EMPTY_CACHE_FN = getattr(_device, "empty_cache", None)
MAX_MEMORY_ALLOCATED_FN = getattr(_device, "max_memory_allocated", 0)
RESET_PEAK_MEMORY_STATS_FN = getattr(_device, "reset_peak_memory_stats", None)
RESET_MAX_MEMORY_ALLOCATED_FN = RESET_PEAK_MEMORY_STATS_FN
