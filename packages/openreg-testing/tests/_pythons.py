# SPDX-License-Identifier: BSD-3-Clause
"""Interpreters from which tests fork programs, and the results of those programs."""

import os
from pathlib import Path

from openreg_testing.workers.fresh_children import FreshFamily

OF_TESTS = "OPENREG_TEST_"  # variables of tests and of the plug-in, which no import reads
# What the kit gives to its processes, and torch reads when it is imported.
OF_THE_KIT = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
# PyTorch's tables of operators and modules, whose import takes longer than that of torch.
TABLES = ("torch.testing._internal.common_methods_invocations", "torch.testing._internal.common_modules")

_families = {}


def environment(**variables):
    """The variables of this process without those of its own tests, and others besides."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "OPENREG_"))}
    return kept | {"PYTHONDONTWRITEBYTECODE": "1"} | variables


def python_path():
    """The variable PYTHONPATH of this process, and before it the folder of this file, so that programs find helpers."""
    return os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))


def run(*arguments, env, folder, timeout, fresh=False):
    """The process that Python runs with these arguments; ``fresh``: that has imported nothing before.

    It is forked from an interpreter that has imported openreg where its own ``import torch`` would.
    """
    of_openreg = [name for name in env if name.startswith("OPENREG_") and not name.startswith(OF_TESTS)]
    loads = not of_openreg and env.get("TORCH_DEVICE_BACKEND_AUTOLOAD") != "0"
    return _family(*["_with_backends"] * loads, "_preloaded").run(
        *arguments, env=env, folder=folder, timeout=timeout, fresh=fresh
    )


def run_kit(*arguments, env, folder, timeout):
    """The same with what the conformance kit needs imported, for the processes that it starts, too."""
    loads = env.get("TORCH_DEVICE_BACKEND_AUTOLOAD") != "0"
    modules = ("_with_backends", *TABLES) if loads else ()  # another backend has to be there before the tables are
    family = _family(*modules, "pytest", **OF_THE_KIT)
    return family.run(*arguments, env={**env, **OF_THE_KIT}, folder=folder, timeout=timeout)


def close():
    """Ends the interpreters."""
    while _families:
        _families.popitem()[1].close()


def _family(*modules, **variables):
    """The interpreter that has imported these modules, too, with these variables besides those of this process."""
    key = (modules, *variables.items())
    if key not in _families:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("OPENREG_", "TORCH_"))}
        env |= {"PYTHONPATH": python_path(), "PYTHONDONTWRITEBYTECODE": "1", **variables}
        _families[key] = FreshFamily(*modules, env=env)
    return _families[key]
