# SPDX-License-Identifier: BSD-3-Clause
"""Runs from a folder path: python tests/conformance."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from conformance.command import main

if __name__ == "__main__":
    sys.exit(main())
