# SPDX-License-Identifier: BSD-3-Clause
"""Runs PyTorch's own table of operators (OpInfo) on a device and compares the results with those of the CPU.

Reading order:

- ``tasks`` and ``run``: the tasks of each process
- ``entries``: the entries of the table
- ``transfer``: equal inputs on both devices
- ``outcome``: the result of one call
- ``reference`` and ``comparison``: the expected result
- the checks, and ``examination``: all checks of one entry and dtype
- ``scorecard``, and ``fuzz`` for random calls

The process that starts the workers imports only ``tasks``, ``run`` and ``scorecard``, because the others import torch.
"""
