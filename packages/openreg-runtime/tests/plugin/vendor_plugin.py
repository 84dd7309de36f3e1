# SPDX-License-Identifier: BSD-3-Clause
"""The module of a plug-in with native parts, which is installed as vendor_plugin/__init__.py."""

import openreg_runtime

openreg_runtime.require_matching_build(__name__)

from vendor_plugin import _native  # noqa: E402

openreg_runtime.extend("vendor_device_count", _native.device_count)
