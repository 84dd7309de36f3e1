# SPDX-License-Identifier: BSD-3-Clause
"""Runs from a folder path: python tests/conformance, or python tests/conformance fuzz."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from conformance import command, fuzz

if __name__ == "__main__":
    sys.exit(fuzz.main(sys.argv[2:]) if sys.argv[1:2] == ["fuzz"] else command.main())
