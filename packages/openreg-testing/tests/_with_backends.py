# SPDX-License-Identifier: BSD-3-Clause
"""Imports torch as a program does by default, which loads the backends."""

import torch

torch._import_device_backends()
