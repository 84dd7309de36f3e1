# SPDX-License-Identifier: BSD-3-Clause
"""How the ranks of a group find each other through a store that may remember other ranks.

torchrun starts ranks again with the store of those that failed, and under it stand the addresses of processes that
have ended (https://github.com/pytorch/pytorch/issues/135712). So each rank but the first makes a number of its own that
no other process has, and the first answers each such number with one token. A rank that has the token knows that the
first one lives, and the first goes on when all have used its token; what stands below the token is new.
"""

from __future__ import annotations

import time
import uuid
from datetime import timedelta
from typing import Any

PAUSE = 0.001  # seconds between looks at the store, and at most
LONGEST_PAUSE = 0.05


def agree(store: Any, rank: int, size: int, timeout: timedelta) -> str:
    """A token that all ranks of a group get, and that no earlier group had. Every rank calls it.

    Blocks until all ranks have called it. Raises RuntimeError where that takes longer than the timeout, or the store
    fails.
    """
    if rank == 0:
        return _answer(store, size, timeout)
    number = uuid.uuid4().hex
    store.set(f"asks/{rank}", number)
    store.wait([f"token/{number}"], timeout)
    token: str = store.get(f"token/{number}").decode()
    store.set(f"joined/{token}/{rank}", "")
    return token


def _answer(store: Any, size: int, timeout: timedelta) -> str:
    """What the first rank does."""
    token = uuid.uuid4().hex
    others = range(1, size)
    joined = [f"joined/{token}/{rank}" for rank in others]
    answered = dict.fromkeys(others, "")
    pause, deadline = PAUSE, time.monotonic() + timeout.total_seconds()
    while joined and not store.check(joined):
        for rank in others:
            if store.check([f"asks/{rank}"]) and (number := store.get(f"asks/{rank}").decode()) != answered[rank]:
                store.set(f"token/{number}", token)
                answered[rank] = number
        if time.monotonic() > deadline:
            absent = [rank for rank in others if not store.check([f"joined/{token}/{rank}"])]
            raise RuntimeError(f"nothing was heard of rank {', '.join(map(str, absent))}")
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
    return token
