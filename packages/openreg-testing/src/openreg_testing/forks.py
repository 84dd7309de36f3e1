# SPDX-License-Identifier: BSD-3-Clause
"""Workers for programs: processes that serve requests and may crash; ``workers.forks`` explains them."""

from openreg_testing.workers.forks import (
    Answer,
    ForkServer,
    Lost,
    SpawnServer,
    Worker,
    attend,
    can_fork,
    send_part,
)

__all__ = ["Answer", "ForkServer", "Lost", "SpawnServer", "Worker", "attend", "can_fork", "send_part"]
