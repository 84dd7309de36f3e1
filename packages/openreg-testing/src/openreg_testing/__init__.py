# SPDX-License-Identifier: BSD-3-Clause
"""Tests of a library on an accelerator, and tests of an accelerator's backend.

``plugin`` is the pytest plug-in for maintainers of libraries, and ``conformance`` the kit for authors of backends. Both
use ``workers``, which provides a process per test without the time of starting one. ``budgets``, ``forks`` and
``fresh`` are for programs and tests of users.

No module of the plug-in imports torch at its import, because the plug-in first sets the variables that the library and
the backend read.
"""
