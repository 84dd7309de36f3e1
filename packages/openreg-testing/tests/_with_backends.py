# SPDX-License-Identifier: BSD-3-Clause
"""Imports torch as a program does that has not said otherwise: with the backends that load with it."""

import torch

torch._import_device_backends()
