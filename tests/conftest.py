# SPDX-License-Identifier: BSD-3-Clause
"""Makes the repository's own tools importable."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

# The tests of combinations need the packages: they run in the environments of `nox -s subsets`.
collect_ignore = [] if os.environ.get("OPENREG_TEST_LANE") else ["subsets"]
