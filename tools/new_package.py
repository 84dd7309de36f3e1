# SPDX-License-Identifier: BSD-3-Clause
"""Makes a package of the common shape, complete and working, to change into one's own.

usage: python -m tools.new_package openreg-NAME "What it does, in one sentence"

It has an operator, a name in torch.openreg, an observer of the device, and something to do when Inductor is imported;
what is not wanted is taken out. The package is a copy of templates/package under another name: nothing there is a
placeholder that a compiler or a linter would stumble over, and nothing outside of the new package and its example has
to be edited.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.packages import ROOT, refuse

TEMPLATE = Path("templates/package")
EXAMPLE = "example.py"
DESCRIPTION = "One more operator for the openreg device"
LONGEST_DESCRIPTION = 100
NAME = re.compile(r"openreg(-[a-z][a-z0-9]*)+")
# The lines of the template that contain the name have room for so many characters.
LONGEST_NAME = 32
# Words that cannot name a namespace, apart from Python's keywords, which cannot name a module.
CPP_KEYWORDS = """
alignas alignof asm auto bool break case catch char concept const constexpr continue decltype default delete do double
else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not
nullptr operator or private protected public register requires return short signed sizeof static struct switch template
this throw true try typedef typeid typename union unsigned using virtual void volatile while xor
"""


def check_name(root: Path, name: str) -> None:
    """Raises ValueError unless a package may have this name."""
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name for a package: write openreg-NAME in small letters, digits and hyphens")
    if len(name) > LONGEST_NAME:
        raise ValueError(f"{name!r} has {len(name)} characters: a package's name has at most {LONGEST_NAME}")
    short = name.removeprefix("openreg-").replace("-", "_")
    if short in CPP_KEYWORDS.split() or keyword.iskeyword(short):
        raise ValueError(f"{name!r} cannot be a package: {short!r} is a keyword, and names a namespace here")
    taken = [path for path in new_paths(root, name) if path.exists()]
    if taken:
        raise ValueError(f"{name!r} is taken: {taken[0].relative_to(root)} exists")


def check_description(text: str) -> None:
    """Raises ValueError unless the text can stand in pyproject.toml and a docstring."""
    allowed = text.isprintable() and not set(text) & set('"\\') and not text.endswith(".")
    if not text.strip() or not allowed or len(text) > LONGEST_DESCRIPTION:
        raise ValueError(
            f"{text!r} is no description: write one line of at most {LONGEST_DESCRIPTION} characters, without "
            "quotation marks, backslashes and a full stop at the end"
        )


def new_paths(root: Path, name: str) -> tuple[Path, Path]:
    """The folder of a package and its example."""
    return root / "packages" / name, root / "examples" / f"{name}.py"


def renamed(text: str, name: str, description: str) -> str:
    """A file of the template for another package."""
    short = name.removeprefix("openreg-").replace("-", "_")
    replacements = {
        DESCRIPTION: description,
        "openreg-example": name,
        "openreg_example": f"openreg_{short}",
        "openreg::example": f"openreg::{short}",
        "example_scale": f"{short}_scale",
    }
    for old, new in replacements.items():
        text = text.replace(old, new)
    return text


def template_files(root: Path) -> Iterator[Path]:
    """The files of the template, below its folder."""
    for path in sorted((root / TEMPLATE).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(root / TEMPLATE)


def create(root: Path, name: str, description: str) -> list[Path]:
    """Writes the package and its example; gives the files. Raises ValueError for a bad name or description."""
    check_name(root, name)
    check_description(description)
    folder, example = new_paths(root, name)
    written = []
    for file in template_files(root):
        target = example if file == Path(EXAMPLE) else folder / renamed(file.as_posix(), name, description)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = (root / TEMPLATE / file).read_text("utf-8")
        target.write_text(renamed(text, name, description), encoding="utf-8")
        written.append(target)
    return written


def main(arguments: list[str]) -> None:
    """Makes the package and prints what to do next."""
    if len(arguments) != 2:
        refuse('usage: python -m tools.new_package openreg-NAME "What it does, in one sentence"')
    name, description = arguments
    try:
        written = create(ROOT, name, description)
    except ValueError as error:
        refuse(f"new_package: {error}")
    print(f"wrote {len(written)} files under packages/{name}, and examples/{name}.py")
    print(f"next: python -m tools.hooks, which enters what it answers in the table of hooks, and nox -s test-{name}")


if __name__ == "__main__":
    main(sys.argv[1:])
