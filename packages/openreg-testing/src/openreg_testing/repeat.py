# SPDX-License-Identifier: BSD-3-Clause
"""The command that runs one test again, in any shell, as a whole run was started."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from .isolation_marks import SEED, prefixes
from .libraries import CUDA_VARIABLE, DEVICE_VARIABLE
from .options import ENVIRONMENT, settings

# Left out: what chooses or reports many tests, with a value of its own or in one word.
_WITH_VALUE = (
    "--schedules",
    "--schedule-seed",
    "-n",
    "--numprocesses",
    "--dist",
    "-k",
    "-m",
    "--maxfail",
    "--junitxml",
    "--junit-xml",
    "--openreg-report",
)
_IN_ONE_WORD = re.compile(
    r"(--(schedules|schedule-seed|numprocesses|dist|maxfail|junit-?xml|openreg-report)=|-[nkm].|-x$|--exitfirst$"
    r"|--[lfn]f$|--last-failed$|--failed-first$|--new-first$|--sw$|--stepwise$)"
)
# What PyTorch reads of the device, beside the settings of the backends.
_OF_PYTORCH = ("TORCH_DEVICE_BACKEND_AUTOLOAD", "PYTORCH_ALLOC_CONF")


def command(config: pytest.Config, nodeid: str, *further: str) -> str:
    """The command that runs this test as it was run, for a POSIX shell in the folder in which pytest was started.

    What was read of the environment goes with it: the settings of the device, and options in PYTEST_ADDOPTS.
    """
    kept: list[str] = []
    # Not known_args_namespace: where that was parsed, the value of --device NAME still looked like a file.
    places = {str(each) for each in getattr(config.option, "file_or_dir", ())}
    rest = iter([*_options_of_environment(), *arguments(config)])
    for argument in rest:
        if argument in _WITH_VALUE:
            next(rest, None)
        elif argument not in places and not _IN_ONE_WORD.match(argument):
            kept.append(argument)
    path, separator, name = nodeid.partition("::")
    place = os.path.relpath(config.rootpath / path, config.invocation_params.dir)
    variables = [f"{name}={shlex.quote(value)}" for name, value in _environment(config).items()]
    return " ".join([*variables, shlex.join(["pytest", Path(place).as_posix() + separator + name, *kept, *further])])


def arguments(config: pytest.Config) -> list[str]:
    """Those of the command line, also in a worker of xdist."""
    controller = getattr(config, "workerinput", {}).get("mainargv")
    return list(controller[1:]) if controller else [str(each) for each in config.invocation_params.args]


def _options_of_environment() -> list[str]:
    try:
        return shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))
    except ValueError:  # pytest takes it as it is, or has refused it
        return []


def _environment(config: pytest.Config) -> dict[str, str]:
    """The variables that whoever started the run had set, and that the device or a library reads."""
    given = settings(config)
    environment = config.stash.get(ENVIRONMENT, None)
    left_out = {SEED}
    if not given.device or not given.option.startswith("$"):
        left_out.add(DEVICE_VARIABLE)
    if not given.cuda_as or not given.cuda_option.startswith("$"):
        left_out.add(CUDA_VARIABLE)
    wanted = [name for name in os.environ if name.startswith(tuple(prefixes())) or name in _OF_PYTORCH]
    if environment is not None:
        kept = (part for text in environment.kept.values() for part in text.split(", "))
        wanted += [part.partition("=")[0] for part in kept]
    return {name: os.environ[name] for name in sorted(set(wanted)) if name not in left_out and name in os.environ}
