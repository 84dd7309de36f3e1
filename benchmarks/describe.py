# SPDX-License-Identifier: BSD-3-Clause
"""Prints the names of all workloads and what their times depend on, as JSON.

run.py runs this script as a process. It does not import torch itself, so that it takes no resources from the processes
that it measures.
"""

import json
import os
import platform

import torch
from workloads import FAMILIES


def describe() -> dict:
    """Returns {"machine": ..., "families": {family: [names]}}."""
    return {
        "machine": {
            "torch": torch.__version__,
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
            "processors": os.cpu_count(),
            "torch threads": torch.get_num_threads(),
        },
        "families": {family: [workload.name for workload in workloads] for family, workloads in FAMILIES.items()},
    }


if __name__ == "__main__":
    print(json.dumps(describe()))
