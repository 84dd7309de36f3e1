# SPDX-License-Identifier: BSD-3-Clause
"""Settings for processes that compile with Inductor: an empty cache.

Otherwise code that an earlier run has cached would be tested in place of the code that this run generates.
"""

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
