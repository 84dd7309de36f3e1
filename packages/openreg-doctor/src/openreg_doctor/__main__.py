# SPDX-License-Identifier: BSD-3-Clause
"""``python -m openreg_doctor``: examines the backend that the arguments name, or else the installed one."""

from __future__ import annotations

import sys

from openreg_doctor.launch import run

sys.exit(run(sys.argv[1:], "python -m openreg_doctor"))
