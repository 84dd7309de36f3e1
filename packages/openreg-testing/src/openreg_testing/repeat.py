# SPDX-License-Identifier: BSD-3-Clause
"""The command that runs one test again, as a whole run was started."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

# Left out: what chooses or reports many tests, with a value of its own or in one word.
_WITH_VALUE = ("--schedules", "-n", "--numprocesses", "--dist", "-k", "-m", "--maxfail", "--junitxml", "--junit-xml")
_IN_ONE_WORD = re.compile(r"(--(schedules|numprocesses|dist|maxfail|junit-?xml)=|-[nkm].|-x$|--[lf]f$)")


def command(config: pytest.Config, arguments: list[str], item: pytest.Item, *further: str) -> str:
    """The command that runs this test as it was run."""
    kept: list[str] = []
    # Not known_args_namespace: where that was parsed, the value of --device NAME still looked like a file.
    places = {str(each) for each in getattr(config.option, "file_or_dir", ())}
    rest = iter(arguments)
    for argument in rest:
        if argument in _WITH_VALUE:
            next(rest, None)
        elif argument not in places and not _IN_ONE_WORD.match(argument):
            kept.append(argument)
    path, separator, name = str(item.nodeid).partition("::")
    place = os.path.relpath(config.rootpath / path, config.invocation_params.dir)
    return shlex.join(["pytest", Path(place).as_posix() + separator + name, *kept, *further])
