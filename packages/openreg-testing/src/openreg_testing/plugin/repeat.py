# SPDX-License-Identifier: BSD-3-Clause
"""The command that repeats one test of a run, for any shell."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from .isolation_marks import SEED, prefixes
from .libraries import CUDA_VARIABLE, DEVICE_VARIABLE
from .options import ENVIRONMENT, settings

# Options that the command leaves out because they select or report many tests: those with a separate value first, then
# those in one word.
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
# Variables of PyTorch that concern the device, in addition to the settings of the backends.
_OF_PYTORCH = ("TORCH_DEVICE_BACKEND_AUTOLOAD", "PYTORCH_ALLOC_CONF")


def command(config: pytest.Config, nodeid: str, *further: str) -> str:
    """Returns the command that repeats this test, for a POSIX shell in the folder in which pytest was started.

    It contains the settings of the device from the environment, and the options in PYTEST_ADDOPTS. ``further`` are more
    options.
    """
    kept: list[str] = []
    # config.known_args_namespace is wrong here: when pytest parsed it, the NAME of --device NAME was taken for a file.
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
    """Returns the arguments of the command line, in a worker of xdist those of its controller."""
    controller = getattr(config, "workerinput", {}).get("mainargv")
    return list(controller[1:]) if controller else [str(each) for each in config.invocation_params.args]


def _options_of_environment() -> list[str]:
    """Returns the options in PYTEST_ADDOPTS."""
    try:
        return shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))
    except ValueError:  # a malformed value, which pytest itself reports
        return []


def _environment(config: pytest.Config) -> dict[str, str]:
    """Returns the variables that were set when the run started and that the device or a library reads."""
    given = settings(config)
    environment = config.stash.get(ENVIRONMENT, None)
    left_out = {SEED}
    if not given.device or not given.option.startswith("$"):
        left_out.add(DEVICE_VARIABLE)
    if not given.cuda_as or not given.cuda_option.startswith("$"):
        left_out.add(CUDA_VARIABLE)
    names = [name for name in os.environ if name.startswith(tuple(prefixes())) or name in _OF_PYTORCH]
    if environment is not None:
        kept = (part for text in environment.kept.values() for part in text.split(", "))
        names += [part.partition("=")[0] for part in kept]
    return {name: os.environ[name] for name in sorted(set(names)) if name not in left_out and name in os.environ}
