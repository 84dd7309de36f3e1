# SPDX-License-Identifier: BSD-3-Clause
"""What is known to differ from the CPU, and why. Reviewed by hand; a name here that passes fails the run."""

# Entries that may fail. At most ten.
MOST_EXCEPTIONS = 10
EXCEPTIONS: dict[str, str] = {}

# Entries whose wrong inputs are found by the kernel, because they depend on the data: the exception is an
# AcceleratorError at the next synchronisation.
LATE: dict[str, str] = {}
