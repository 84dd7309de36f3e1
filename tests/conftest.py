# SPDX-License-Identifier: BSD-3-Clause
"""Makes the repository's own tools and the scripts of the benchmarks importable."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

# The tests of combinations need the packages: they run in the environments of `nox -s subsets`.
collect_ignore = [] if os.environ.get("OPENREG_TEST_LANE") else ["subsets"]
