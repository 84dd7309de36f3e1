# SPDX-License-Identifier: BSD-3-Clause
"""Measures how long torch.compile takes for the first training step, with an empty cache and with a full one."""

import argparse
import json
import tempfile
import time

from names import MODELS
from processes import run_script, turn
from results import Family


def measure_here(device_name: str, model: str) -> dict[str, float]:
    """Returns the seconds of the first step of a compiled model and loss.

    The process has compiled another function before, so that the import of the compiler is not included.
    """
    import torch
    from workloads.models import MODELS as MAKERS
    from workloads.models import Task
    from workloads.training import OPTIMIZERS, step_of

    device = torch.device(device_name)
    # Imports the compiler, and compiles the header that all kernels have.
    torch.compile(lambda x: x.sin() + 1)(torch.ones(4, device=device))
    task = MAKERS[model](device)
    optimizer = OPTIMIZERS["SGD"](task.model.parameters())
    # task.model.compile() would not compile a class of torch.nn, such as Sequential.
    step = step_of(Task(torch.compile(task.model), task.batch, torch.compile(task.loss)), optimizer)
    start = time.perf_counter()
    step()
    if device.type != "cpu":
        torch.accelerator.synchronize()
    return {"seconds": time.perf_counter() - start}


def measure(rounds: int) -> Family:
    """Runs each program twice, with a cache folder of its own. Returns {workload: {device: [seconds]}}."""
    found: Family = {}
    for number in range(rounds):
        for model in MODELS:
            for device in turn(number):
                with tempfile.TemporaryDirectory() as folder:
                    for kind in ("cold", "from the cache"):
                        settings = {"TORCHINDUCTOR_CACHE_DIR": folder, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
                        done = run_script("compile_time.py", device, model, device=device, settings=settings)
                        found.setdefault(f"compile {model}, {kind}", {}).setdefault(device, []).append(done["seconds"])
    return found


def main() -> None:
    """Measures one model on one device, and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device")
    parser.add_argument("model", choices=MODELS)
    arguments = parser.parse_args()
    print(json.dumps(measure_here(arguments.device, arguments.model)))


if __name__ == "__main__":
    main()
