# SPDX-License-Identifier: BSD-3-Clause
"""Functions for files and programs that several tests use."""

import os
import subprocess


def write_files(root, texts):
    """Writes files below a folder, by name."""
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def replace(path, old, new):
    """Replaces the first occurrence of a text, which has to be there; where that is empty, appends to the file."""
    text = path.read_text("utf-8") if old or path.exists() else ""
    assert old in text
    path.write_text(text.replace(old, new, 1) if old else text + new, "utf-8")


def run(*command, cwd=None, **variables):
    """The result of a program, whose output is text; `variables` come on top of the environment."""
    env = {**os.environ, **variables}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
