# SPDX-License-Identifier: BSD-3-Clause
"""Settings of processes that compile with Inductor, whose cache of earlier runs would hide the code of this run."""

import contextlib
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def empty_cache() -> Iterator[dict[str, str]]:
    """Yields environment variables of Inductor that name an empty cache and disable its pool of compiler processes.

    The cache is deleted at the end of the block.
    """
    with tempfile.TemporaryDirectory() as folder:
        yield {"TORCHINDUCTOR_CACHE_DIR": folder, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
