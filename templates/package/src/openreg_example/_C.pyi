# SPDX-License-Identifier: BSD-3-Clause
# Importing it registers the operator.

from types import TracebackType

class LaunchCounter:
    """Counts the kernels that any thread enqueues on the openreg devices, until :meth:`stop` or the end of a ``with``.

    Any number of counters may count at a time. Raises RuntimeError where the device refuses to be observed.
    """

    def __enter__(self) -> LaunchCounter: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    def stop(self) -> None:
        """Ends the counting, having waited until all that was counted is done."""
    @property
    def launched(self) -> int:
        """Kernels so far, from any thread."""
    @property
    def completed(self) -> int:
        """Those that are done, failed ones included."""
