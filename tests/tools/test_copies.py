# SPDX-License-Identifier: BSD-3-Clause
"""A copy of the repository has what a commit would have, and the times of files that did not change."""

import os

import pytest

from tools.packages import git
from tools.sessions import copies

BUILT = 1_600_000_000_000_000_000  # when what is built beside the copy ended, in nanoseconds


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with a file that git knows, one that it does not know yet, and one that it ignores."""
    root = tmp_path / "checkout"
    root.mkdir()
    for name, text in {"known.cpp": "1", "new.cpp": "2", "ignored.o": "3", ".gitignore": "*.o\n"}.items():
        (root / name).write_text(text)
    git(root, "init", "--quiet")
    git(root, "add", "known.cpp")
    monkeypatch.setattr(copies, "ROOT", root)
    return root


def test_a_copy_has_what_a_commit_would_have(checkout, tmp_path):
    target = tmp_path / "copy"
    target.mkdir()
    (target / "left over.cpp").write_text("of an earlier copy")
    copies.copy_repository(target)
    assert {path.name for path in copies.files(target)} == {"known.cpp", "new.cpp", ".gitignore"}
    assert git(target, "ls-files").split() == [".gitignore", "known.cpp", "new.cpp"]


def test_what_was_built_in_an_earlier_copy_stays(checkout, tmp_path):
    (checkout / ".gitignore").write_text("dist/\nbuild/\n")
    target = tmp_path / "copy"
    for name in ("dist/a.whl", "build/site/index.html", "packages/a/build/object"):
        (target / name).parent.mkdir(parents=True)
        (target / name).write_text("built")
    copies.copy_repository(target)
    assert (target / "dist" / "a.whl").exists()
    assert (target / "build" / "site" / "index.html").exists()
    assert not (target / "packages" / "a" / "build" / "object").exists()


def test_only_what_changed_since_the_copy_before_is_newer_than_what_was_built(checkout, tmp_path):
    target = tmp_path / "copy"
    copies.copy_repository(target)
    for path in copies.files(target):
        os.utime(path, ns=(BUILT, BUILT))
    (checkout / "known.cpp").write_text("changed while the build ran")
    os.utime(checkout / "known.cpp", ns=(BUILT - 1, BUILT - 1))
    copies.copy_repository(target)
    assert (target / "known.cpp").read_text() == "changed while the build ran"
    assert (target / "known.cpp").stat().st_mtime_ns > BUILT
    assert (target / "new.cpp").stat().st_mtime_ns == BUILT
