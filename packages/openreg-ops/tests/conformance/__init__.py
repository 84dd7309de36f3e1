# SPDX-License-Identifier: BSD-3-Clause
"""Runs PyTorch's own table of operators (OpInfo) on the device and compares it with the CPU.

    python tests/conformance                      # the whole; about a quarter of an hour on two cores
    python tests/conformance --dtype float32 --op 'nn.functional.*' --check forward --check backward

Reading order: ``entries`` (what is run), ``transfer`` (the same inputs on both devices), ``outcome`` (one call and
what came of it), ``reference`` and ``comparison`` (what has to come of it), then the checks, ``examination`` (all
checks of one entry and dtype), ``pool`` and ``worker`` (processes that may crash), ``scorecard``, ``exceptions``.
"""
