# SPDX-License-Identifier: BSD-3-Clause
"""Runs PyTorch's own table of operators (OpInfo) on a device and compares the results with those of the CPU.

Reading order:

- ``checks``: the names of the checks
- ``tasks`` and ``run``: the tasks of each process
- ``entries``: the entries of the table
- ``transfer``: equal inputs on both devices
- ``outcome``: the result of one call
- ``reference`` and ``comparison``: the expected result
- ``report``: the results of the checks of one entry and dtype
- the modules ``check_*``, and ``examination``, which calls all of them
- ``scorecard``, and ``fuzz`` for random calls

The process that starts the workers imports only ``checks``, ``tasks``, ``run`` and ``scorecard``, because the others
import torch.
"""
