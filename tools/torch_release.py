# SPDX-License-Identifier: BSD-3-Clause
"""Prints the release of PyTorch that the checkout is for, or changes it.

usage: python -m tools.torch_release           prints the release, as "2.13"
       python -m tools.torch_release 2.15      writes versions and pins of all packages for that one

The source is the same for every release in SUPPORTED. The declarations of a package are not, because a wheel is
compiled for one release: its version begins with the release of torch that it needs (docs/releasing/packaging.md). A
change writes the files in PINNED, and in the pages their excerpts and the commands that install torch. Sentences,
tables and printed messages in pages name a release as an example, and stay.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.markers import EXCERPT
from tools.packages import ROOT, discover, refuse, requirement_name

# The supported releases, the oldest first. To end the support of one, delete it here, and then the code that only it
# needs, in openreg-compile and in tests: `git grep "torch 2.13"`.
SUPPORTED = ("2.13", "2.14", "2.15")
PINNED = (
    *("packages/*/pyproject.toml", "templates/*/pyproject.toml", "examples/tutorial/*/pyproject.toml"),
    ".pre-commit-config.yaml",  # mypy reads torch's annotations
)
PAGES = ("docs/**/*.md", "tools/README.md")

# The version of a package of ours begins with the release, and so do the pins of torch and of our packages.
VERSION = re.compile(r'(?m)^(version = ")(\d+\.\d+)(\.\d+")$')
PIN = re.compile(r"\b((?:torch|openreg-[a-z-]+)==)(\d+\.\d+)(\.\*)")
COMMAND = re.compile(r"(?m)^pip install .*")  # in a page


def current(root: Path = ROOT) -> str:
    """Returns the release that the packages are for, such as "2.13"."""
    return next(iter(discover(root).values())).torch


def others(root: Path = ROOT) -> list[str]:
    """Returns the other supported releases."""
    return [release for release in SUPPORTED if release != current(root)]


def pinned_files(root: Path) -> Iterator[Path]:
    """Yields the files that name the release."""
    for pattern in PINNED:
        yield from sorted(root.glob(pattern))


def is_ours(path: Path) -> bool:
    """Returns True if a project is a package of ours. Steps of the tutorial have versions of their own."""
    return "tutorial" not in path.parts


def rewritten(text: str, release: str, *, ours: bool) -> str:
    """Returns the text of a file with pins for another release. Changes the version only if `ours` is true."""
    if ours:
        text = VERSION.sub(rf"\g<1>{release}\g<3>", text)
    return PIN.sub(rf"\g<1>{release}\g<3>", text)


def rewritten_page(text: str, release: str) -> str:
    """Returns the text of a page whose excerpts and commands are for another release."""

    def excerpt(match: re.Match[str]) -> str:
        shown = match.group()
        return rewritten(shown, release, ours="tutorial" not in shown) if "pyproject.toml" in match["call"] else shown

    return COMMAND.sub(lambda match: rewritten(match.group(), release, ours=False), EXCERPT.sub(excerpt, text))


def outdated(root: Path, release: str) -> dict[Path, str]:
    """Returns the files under `root` that are for another release of PyTorch, with their texts for this one."""
    texts = {path: rewritten(path.read_text("utf-8"), release, ours=is_ours(path)) for path in pinned_files(root)}
    for pattern in PAGES:
        texts |= {path: rewritten_page(path.read_text("utf-8"), release) for path in sorted(root.glob(pattern))}
    return {path: text for path, text in texts.items() if text != path.read_text("utf-8")}


def retarget(root: Path, release: str) -> list[Path]:
    """Changes the packages under `root` to a release of PyTorch. Returns the files that changed."""
    changed = outdated(root, release)
    for path, text in changed.items():
        path.write_text(text, "utf-8")
    return list(changed)


def pins_are_of_one_release(root: Path) -> list[str]:
    """Checks that all versions and pins are of one supported release. Returns one line per violation."""
    releases = {package.name: package.torch for package in discover(root).values()}
    found = [
        f"{name}: the version begins with {release}, which is none of {', '.join(SUPPORTED)}"
        for name, release in releases.items()
        if release not in SUPPORTED
    ]
    if found or not releases:
        return found
    release = current(root)
    advice = f"not all of it is for torch {release}: python -m tools.torch_release {release}"
    found += [f"{path.relative_to(root).as_posix()}: {advice}" for path in outdated(root, release)]
    for package in discover(root).values():
        found += [
            f"{package.name}: {item!r} should be torch=={release}.*"
            for item in package.requirements + package.build_requirements
            if requirement_name(item) == "torch" and item != f"torch=={release}.*"
        ]
    return found


def release_of(version: str) -> str:
    """Returns the release that a version of torch belongs to: "2.16" for "2.16.0.dev20261101+cpu"."""
    return ".".join(version.split(".")[:2])


def checked(release: str) -> str:
    """Returns the release if it is supported. Ends the command otherwise."""
    if release not in SUPPORTED:
        refuse(f"no release of PyTorch that this source serves: {release!r}; choose one of {', '.join(SUPPORTED)}")
    return release


def main(*arguments: str) -> int:
    """Prints the release, or changes it and prints the files that changed."""
    if not arguments:
        print(current())
    elif len(arguments) > 1:
        refuse(__doc__ or "")
    else:
        for path in retarget(ROOT, checked(arguments[0])):
            print(path.relative_to(ROOT).as_posix())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
