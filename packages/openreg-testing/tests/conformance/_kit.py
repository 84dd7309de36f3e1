# SPDX-License-Identifier: BSD-3-Clause
"""Runs calls of the conformance kit in a process of their own, whose child processes have imported what they need.

As a program this file is that process.
"""

import pickle
import sys
import tempfile
import types
from pathlib import Path

import _pythons

GUARD = 900  # seconds, against hangs


def call(function, *arguments, **named):
    """What the kit's function gives, all of it where that is a generator; what it raises is raised here, too."""
    with tempfile.TemporaryDirectory() as folder:
        request, answer = Path(folder, "request"), Path(folder, "answer")
        request.write_bytes(pickle.dumps((function, arguments, named)))
        env = _pythons.environment(PYTHONPATH=_pythons.python_path())
        done = _pythons.run_kit(__file__, str(request), str(answer), env=env, folder=folder, timeout=GUARD)
        assert answer.exists(), done.stdout + done.stderr
        value = pickle.loads(answer.read_bytes())
    if isinstance(value, Exception):
        raise value
    return value


def main(request, answer):
    function, arguments, named = pickle.loads(Path(request).read_bytes())
    try:
        value = function(*arguments, **named)
        if isinstance(value, types.GeneratorType):
            value = list(value)
    except Exception as error:
        value = error
    Path(answer).write_bytes(pickle.dumps(value))


if __name__ == "__main__":
    main(*sys.argv[1:])
