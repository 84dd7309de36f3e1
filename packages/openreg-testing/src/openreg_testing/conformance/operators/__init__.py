# SPDX-License-Identifier: BSD-3-Clause
"""Runs PyTorch's own table of operators (OpInfo) on a device and compares it with the CPU.

Reading order: ``tasks`` and ``run`` (what is asked of which process), ``entries`` (what is run), ``transfer`` (the same
inputs on both devices), ``outcome`` (one call and what came of it), ``reference`` and ``comparison`` (what has to come
of it), then the checks, ``examination`` (all checks of one entry and dtype), ``scorecard``. ``fuzz`` draws calls.

Only ``tasks``, ``run`` and ``scorecard`` are imported where no device is: the others import torch.
"""
