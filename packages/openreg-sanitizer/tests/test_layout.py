# SPDX-License-Identifier: BSD-3-Clause
"""The overlap of strided tensors, compared with sets of bytes."""

import itertools
import random

import pytest

from openreg_sanitizer import _C


def bytes_of(begin, sizes, strides):
    indices = itertools.product(*map(range, sizes))
    return {begin + sum(i * stride for i, stride in zip(index, strides, strict=True)) for index in indices}


def overlap(one, other):
    return _C.overlap(*one, *other)


@pytest.mark.parametrize("seed", range(20))
def test_the_overlap_is_that_of_the_bytes(seed):
    random.seed(seed)
    for _ in range(200):
        pair = []
        for _ in range(2):
            dims = random.randint(0, 3)
            sizes = [random.randint(1, 4) for _ in range(dims)]
            pair.append((random.randint(0, 40), sizes, [random.choice([0, 1, 2, 3, 5, 8, 16]) for _ in range(dims)]))
        assert overlap(*pair) == bool(bytes_of(*pair[0]) & bytes_of(*pair[1])), pair


def test_columns_of_a_large_matrix():
    column = (0, [1 << 18, 4], [64, 1])
    assert not overlap(column, (4, [1 << 18, 4], [64, 1]))
    assert overlap(column, (3, [1 << 18, 4], [64, 1]))
