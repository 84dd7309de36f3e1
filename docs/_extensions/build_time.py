# SPDX-License-Identifier: BSD-3-Clause
"""Writes into the site how long its build took: the seconds, in `build_time.txt`.

docs/tests/test_site.py has the limit.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

NAME = "build_time.txt"


def setup(app: Sphinx) -> ExtensionMetadata:
    """Starts the watch, and stops it when the build has ended."""
    start = time.monotonic()

    def finished(app: Sphinx, exception: Exception | None) -> None:
        if exception is None:
            (app.outdir / NAME).write_text(f"{time.monotonic() - start:.1f}\n", encoding="utf-8")

    app.connect("build-finished", finished)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
