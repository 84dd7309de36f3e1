# SPDX-License-Identifier: BSD-3-Clause
"""Makes the repository's own tools importable."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
