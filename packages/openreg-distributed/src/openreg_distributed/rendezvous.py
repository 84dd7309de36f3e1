# SPDX-License-Identifier: BSD-3-Clause
"""Connects the ranks of a group through a store that may still have keys of an earlier run.

torchrun restarts ranks with the store of the ranks that failed, which still has the addresses of processes that have
exited (https://github.com/pytorch/pytorch/issues/135712). So each rank except the first writes a unique number. The
first rank writes one token for all these numbers. A rank that reads the token can rely on a running first rank. The
first rank returns when all ranks have confirmed the token. The group then uses the token as the prefix of all its keys,
so it reads no stale one.
"""

from __future__ import annotations

import time
import uuid
from datetime import timedelta
from typing import Any

PAUSE = 0.001  # Seconds between two reads of the store; it doubles up to LONGEST_PAUSE.
LONGEST_PAUSE = 0.05


def agree(store: Any, rank: int, size: int, timeout: timedelta) -> str:
    """Returns a token that is equal on all ranks of the group and new for each group. Every rank calls this.

    Blocks until all ranks have called it (rank 0), or until rank 0 has answered (other ranks). Raises RuntimeError if
    that takes longer than the timeout, or if the store fails.
    """
    if rank == 0:
        return _answer(store, size, timeout)
    number = uuid.uuid4().hex
    store.set(f"number/{rank}", number)
    store.wait([f"token/{number}"], timeout)
    token: str = store.get(f"token/{number}").decode()
    store.set(f"joined/{token}/{rank}", "")
    return token


def _answer(store: Any, size: int, timeout: timedelta) -> str:
    """Writes the token for the numbers of the other ranks until all have confirmed it, and returns it."""
    token = uuid.uuid4().hex
    others = range(1, size)
    joined = [f"joined/{token}/{rank}" for rank in others]
    answered = dict.fromkeys(others, "")
    pause, deadline = PAUSE, time.monotonic() + timeout.total_seconds()
    while joined and not store.check(joined):
        for rank in others:
            if store.check([f"number/{rank}"]) and (number := store.get(f"number/{rank}").decode()) != answered[rank]:
                store.set(f"token/{number}", token)
                answered[rank] = number
        if time.monotonic() > deadline:
            absent = [rank for rank in others if not store.check([f"joined/{token}/{rank}"])]
            raise RuntimeError(f"no message arrived from rank {', '.join(map(str, absent))}")
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
    return token
