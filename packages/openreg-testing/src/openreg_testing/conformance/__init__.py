# SPDX-License-Identifier: BSD-3-Clause
"""The conformance kit: what a backend behind PrivateUse1 has to keep, tested on any of them.

    python -m openreg_testing conformance --device npu --import torch_npu

Reading order: ``command`` (the arguments), ``manifest`` (what a backend says of itself), ``bring_up`` and ``pool``
(processes that may crash), then what runs in them: ``operators`` (PyTorch's table of operators against the CPU),
``suites`` with ``suite_tests`` (one test per promise), ``upstream`` (PyTorch's own test files). ``card`` sums up,
``comparison`` holds it against an earlier one.
"""
