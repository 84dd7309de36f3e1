# SPDX-License-Identifier: BSD-3-Clause
"""Tests of a library on an accelerator, and tests of an accelerator's backend.

Two users, one machinery: ``plugin`` is the pytest plug-in for a library's maintainer, ``conformance`` the kit for a
backend's engineer. ``forks`` gives both a process per test without the price of starting one.

Nothing here imports torch when it is imported: the plug-in has to set what the library and the backend read first.
"""
