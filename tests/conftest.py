# SPDX-License-Identifier: BSD-3-Clause
"""Makes the repository's own tools and the scripts of the benchmarks importable."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

# The tests of combinations and of ONNX need the packages: they run in the environments of `nox -s subsets` and
# `nox -s onnx`. Those of the recipe need a copy of a package, which `nox -s recipe` makes.
NEEDS = {"subsets": "OPENREG_TEST_LANE", "onnx": "OPENREG_TEST_LANE", "recipe": "OPENREG_TEST_RECIPE"}
collect_ignore = [folder for folder, variable in NEEDS.items() if not os.environ.get(variable)]
