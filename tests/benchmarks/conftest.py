# SPDX-License-Identifier: BSD-3-Clause
"""Makes the modules of the benchmarks importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
