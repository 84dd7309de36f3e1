# SPDX-License-Identifier: BSD-3-Clause
"""``python -m openreg_doctor``: examines a backend, or writes the project of one (`new`, `update`)."""

from __future__ import annotations

import sys

from openreg_doctor.launch import run

sys.exit(run(sys.argv[1:], "python -m openreg_doctor"))
