# SPDX-License-Identifier: BSD-3-Clause
"""Shared fixtures."""

import _pythons
import pytest


@pytest.fixture(scope="session", autouse=True)
def no_process_is_left():
    """The interpreters that fork are started when a test first needs them."""
    yield
    _pythons.close()
