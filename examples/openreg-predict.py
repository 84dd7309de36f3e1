# SPDX-License-Identifier: BSD-3-Clause
"""The description of a chip: each number with its source."""

import openreg_predict

chip = openreg_predict.load("h100")
print(chip.title, f"{chip.memory_bandwidth.value / 1e12} TB/s, {chip.memory_bandwidth.source}")
