# SPDX-License-Identifier: BSD-3-Clause
"""What the conformance kit has to know of openreg: conformance.toml, as it holds for the installed torch."""

from pathlib import Path

import torch

from openreg_testing.conformance import manifest
from openreg_testing.conformance.bring_up import Setup

MANIFEST = manifest.read(Path(__file__).with_name("conformance.toml"), torch.__version__)
SETUP = Setup(MANIFEST.device, MANIFEST.imports, MANIFEST)
