# SPDX-License-Identifier: BSD-3-Clause
"""torch.openreg.graph captures with the pool and the mode of its graph, unless it has others."""

import gc
import weakref

import pytest
import torch

from openreg_runtime import openreg

pytestmark = [pytest.mark.usefixtures("clean_device"), pytest.mark.covers("module.graph")]


def test_the_pool_and_the_mode_of_the_graph_are_used():
    pool = openreg.graph_pool_handle()
    graph = openreg.Graph(pool=pool, capture_error_mode="relaxed")
    with openreg.graph(graph):
        openreg._sleep(1)
        openreg.synchronize()  # an error in any other mode
    assert graph.pool() == pool


def test_a_pool_and_a_mode_of_the_context_are_used_instead():
    pool = openreg.graph_pool_handle()
    graph = openreg.Graph(pool=openreg.graph_pool_handle(), capture_error_mode="global")
    with openreg.graph(graph, pool=pool, capture_error_mode="relaxed"):
        openreg._sleep(1)
        openreg.synchronize()
    assert graph.pool() == pool


class Member:
    pass


@pytest.mark.parametrize("collects", [False, True])
def test_garbage_is_collected_before_a_capture_if_the_compilers_setting_says_so(collects):
    member = Member()
    member.itself = member
    alive = weakref.ref(member)
    gc.disable()
    try:
        del member
        with torch.compiler.config.patch(force_cudagraph_gc=collects), openreg.graph(openreg.Graph()):
            assert (alive() is None) == collects
    finally:
        gc.enable()
