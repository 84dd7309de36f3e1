# SPDX-License-Identifier: BSD-3-Clause
"""The conformance kit: tests of what PyTorch requires of a backend behind PrivateUse1, for any such backend.

    python -m openreg_testing conformance --device npu --import torch_npu

Reading order: ``command`` (the arguments), ``manifest`` (the file of a backend's expected failures), ``bring_up`` (in a
worker process, imports the backend and checks that the device exists) and ``pool`` (the worker processes, which may
crash). These processes run ``operators`` (PyTorch's table of operators, OpInfo, against the CPU), ``suites`` with
``suite_tests`` (one test per requirement) and ``upstream`` (PyTorch's own test files). ``card`` collects the results,
and ``comparison`` compares them with those of an earlier run.
"""
