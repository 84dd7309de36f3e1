# SPDX-License-Identifier: BSD-3-Clause
"""Checks that separately installed packages share one device state in a process.

usage: check_shared_state.py <import name>=<regular|editable>...

Each package must be installed in the way that its argument names. Then the effect of one package must be visible to
another: the runtime sets the current device and counts its memory, and the operators allocate on it.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from importlib import metadata
from pathlib import Path


def check(holds: bool, message: str) -> None:
    """Ends the process with the message unless `holds` is true."""
    if not holds:
        raise SystemExit(f"check_shared_state: {message}")


def main(arguments: list[str]) -> None:
    """Runs all checks. `arguments` are those of the command line."""
    # torch warns on import if NumPy is not installed, as in the build environment.
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    for argument in arguments:
        import_name, _, form = argument.partition("=")
        origin = metadata.distribution(import_name.replace("_", "-")).read_text("direct_url.json") or "{}"
        found = "editable" if json.loads(origin).get("dir_info", {}).get("editable") else "regular"
        check(found == form, f"{import_name} is installed {found}, not {form}")
        importlib.import_module(import_name)

    torch = importlib.import_module("torch")
    device = torch.openreg
    device.set_device(1)
    before = device.memory_allocated(1)
    tensor = torch.empty(1 << 16, device="openreg")
    check(tensor.device == torch.device("openreg:1"), f"allocated on {tensor.device}")
    allocated = device.memory_allocated(1) - before
    check(allocated >= tensor.nbytes, f"the runtime counts {allocated} bytes for a tensor of {tensor.nbytes}")
    result = (tensor.fill_(1) + 2).cpu()
    check(bool((result == 3).all()), f"a kernel gave {result[:4].tolist()} instead of 3")
    maps = Path("/proc/self/maps")
    for stem in ("libopenreg.", "libopenreg_runtime.") if maps.exists() else ():
        paths = {line.split(maxsplit=5)[-1].strip() for line in maps.read_text().splitlines()}
        loaded = sorted(path for path in paths if Path(path).name.startswith(stem))
        check(len(loaded) == 1, f"one {stem}so is expected in the process, and these are loaded: {loaded}")
    print(f"one device state: {' '.join(arguments)}")


if __name__ == "__main__":
    main(sys.argv[1:])
