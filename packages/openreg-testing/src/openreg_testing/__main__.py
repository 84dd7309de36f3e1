# SPDX-License-Identifier: BSD-3-Clause
"""The commands ``python -m openreg_testing conformance`` and ``python -m openreg_testing fuzz``."""

import sys

from .conformance import command

if __name__ == "__main__":
    sys.exit(command.main(sys.argv[1:]))
