# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures that forbid fallbacks to the CPU, in models and while they are traced."""

import exports
import pytest
import torch

import torch_openreg  # noqa: F401  (brings the device up)


@pytest.fixture(autouse=True)
def native():
    torch.manual_seed(2026)
    with torch.openreg.fallback_mode("error"):
        yield


@pytest.fixture
def check(tmp_path):
    """exports.check() with a folder of the test's own."""

    def export_and_compare(*args, **options):
        return exports.check(tmp_path, *args, **options)

    return export_and_compare
