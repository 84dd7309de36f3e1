# SPDX-License-Identifier: BSD-3-Clause
"""The ranks of a group find each other through a store, also if earlier ranks have left keys there."""

import math
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace

import pytest
from torch import distributed

from openreg_distributed import rendezvous
from openreg_distributed.rendezvous import agree

LONG = timedelta(seconds=120)


def all_agree(store, size, order=None):
    """What each rank gets; they come in an order."""
    with ThreadPoolExecutor(size) as pool:
        asked = [pool.submit(agree, store, rank, size, LONG) for rank in order or range(size)]
        return {future.result() for future in asked}


@pytest.mark.parametrize("size", [1, 2, 5])
def test_all_ranks_get_one_token_and_each_time_another(size):
    store = distributed.HashStore()
    tokens = [all_agree(store, size, order) for order in (None, None, range(size)[::-1])]
    assert [len(one) for one in tokens] == [1, 1, 1]
    assert len(set.union(*tokens)) == 3


def test_what_ranks_left_that_ended_before_they_met_is_no_answer():
    """The first rank had answered the second, which has ended; the third had asked and got no answer."""
    store = distributed.HashStore()
    store.set("number/1", "old")
    store.set("token/old", "stale")
    store.set("joined/stale/1", "")
    store.set("number/2", "older")
    (token,) = all_agree(store, 3)
    assert token != "stale"


def test_the_first_rank_names_those_that_did_not_come(monkeypatch):
    """Its time is up when the one that came has its answer: not before, and not later."""
    store = distributed.HashStore()
    with ThreadPoolExecutor(1) as pool:
        present = pool.submit(agree, store, 1, 4, LONG)
        clock = SimpleNamespace(monotonic=lambda: math.inf if present.done() else 0.0, sleep=time.sleep)
        monkeypatch.setattr(rendezvous, "time", clock)
        with pytest.raises(RuntimeError, match="no message arrived from rank 2, 3"):
            agree(store, 0, 4, timedelta(seconds=1))
        assert present.result()


def test_another_rank_waits_for_the_first_no_longer_than_the_timeout():
    with pytest.raises(RuntimeError, match="timeout"):
        agree(distributed.HashStore(), 1, 2, timedelta(milliseconds=50))
