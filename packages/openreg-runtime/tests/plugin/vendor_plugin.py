# SPDX-License-Identifier: BSD-3-Clause
"""Becomes vendor_plugin/__init__.py: the shape of every package with native parts."""

import openreg_runtime

openreg_runtime.require_matching_build(__name__)

from vendor_plugin import _native  # noqa: E402

openreg_runtime.extend("vendor_device_count", _native.device_count)
