# SPDX-License-Identifier: BSD-3-Clause
"""Creates a package that is complete and works, for its author to change.

usage: python -m tools.new_package openreg-NAME "What it does, in one sentence"

The package has an operator, a name in torch.openreg, an observer of the device, which is called for its tasks, and a
function that runs when Inductor is imported. The author removes what is not needed. The package is a copy of
templates/package under another name. The template contains no placeholders that compilers or linters would reject, and
no file outside of the new package and its example has to be edited.
"""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path

from tools.packages import ROOT, refuse

TEMPLATE = Path("templates/package")
EXAMPLE = "example.py"
DESCRIPTION = "One more operator for the openreg device"
# A description stands in pyproject.toml, and at the beginning of a docstring, which adds the full stop.
LONGEST_DESCRIPTION = 100
SENTENCE = re.compile(rf'(?=.{{1,{LONGEST_DESCRIPTION}}}$)\S([^"\\\n]*[^"\\\s.])?')
NAME = re.compile(r"openreg(-[a-z][a-z0-9]*)+")
# The lines of the template that contain the name have room for this number of characters.
LONGEST_NAME = 32


def create(root: Path, name: str, description: str) -> list[Path]:
    """Writes the package and its example, and returns the files. Raises ValueError for a bad name or description."""
    short = name.removeprefix("openreg-").replace("-", "_")
    if not NAME.fullmatch(name) or len(name) > LONGEST_NAME or keyword.iskeyword(short):
        raise ValueError(
            f"{name!r} is no name for a package: write openreg-NAME in small letters, digits and hyphens, at most "
            f"{LONGEST_NAME} characters and no keyword"
        )
    if not SENTENCE.fullmatch(description):
        raise ValueError(
            f"{description!r} is no description: write one line of at most {LONGEST_DESCRIPTION} characters, without "
            "quotation marks, backslashes and a full stop at the end"
        )
    folder, example = root / "packages" / name, root / "examples" / f"{name}.py"
    for path in (folder, example):
        if path.exists():
            raise ValueError(f"{name!r} is taken: {path.relative_to(root)} exists")
    written = []
    template = root / TEMPLATE
    for path in sorted(path for path in template.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        file = path.relative_to(template).as_posix()
        target = example if file == EXAMPLE else folder / renamed(file, name, description)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(renamed(path.read_text("utf-8"), name, description), encoding="utf-8")
        written.append(target)
    return written


def renamed(text: str, name: str, description: str) -> str:
    """Returns a text of the template with the name and the description of another package."""
    short = name.removeprefix("openreg-").replace("-", "_")
    text = text.replace(DESCRIPTION, description).replace("openreg-example", name)
    return re.sub(r"(openreg_|openreg::)example|example(?=_scale)", rf"\g<1>{short}", text)


def main(arguments: list[str]) -> None:
    """Creates the package and prints what to do next."""
    if len(arguments) != 2:
        refuse('usage: python -m tools.new_package openreg-NAME "What it does, in one sentence"')
    name, description = arguments
    try:
        written = create(ROOT, name, description)
    except ValueError as error:
        refuse(f"new_package: {error}")
    print(f"wrote {len(written)} files under packages/{name}, and examples/{name}.py")
    print(f"next: nox -s test-{name}")


if __name__ == "__main__":
    main(sys.argv[1:])
