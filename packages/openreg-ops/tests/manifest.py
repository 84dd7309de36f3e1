# SPDX-License-Identifier: BSD-3-Clause
"""The manifest of openreg for the conformance kit: conformance.toml, adapted to the installed torch."""

from pathlib import Path

import torch

from openreg_testing.conformance import manifest
from openreg_testing.conformance.bring_up import Setup

MANIFEST = manifest.read(Path(__file__).with_name("conformance.toml"), torch.__version__)
SETUP = Setup(MANIFEST.device, MANIFEST.imports, MANIFEST)
