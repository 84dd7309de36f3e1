# SPDX-License-Identifier: BSD-3-Clause
"""Settings of processes that compile: what an earlier run left in a cache would hide what this one generates."""

import contextlib
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def of_its_own() -> Iterator[dict[str, str]]:
    """Environment variables of Inductor: an empty cache, and no pool of compiler processes for each process."""
    with tempfile.TemporaryDirectory() as folder:
        yield {"TORCHINDUCTOR_CACHE_DIR": folder, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
