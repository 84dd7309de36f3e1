# SPDX-License-Identifier: BSD-3-Clause
"""Random sequences of collectives on one to four ranks give NumPy's results (hypothesis)."""

import properties
import pytest
from collectives import operations_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from values import EVERY

FEW, MANY = 25, 400
SIZES = ["one", "two", "three", "four"]

layouts = st.builds(
    properties.Layout,
    order=st.permutations(range(4)).map(tuple),
    steps=st.tuples(*[st.integers(1, 3)] * 4),
    offset=st.integers(0, 3),
)
shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)


@st.composite
def calls(draw):
    kind = draw(st.sampled_from([*properties.REDUCTIONS, *properties.MOVERS]))
    reduces = kind in properties.REDUCTIONS
    dtype = draw(st.sampled_from([one for one in EVERY if not (reduces and one == "complex32")]))
    operation = draw(st.sampled_from(operations_of(dtype))) if reduces else ""
    return properties.Call(
        kind, dtype, draw(shapes), draw(layouts), operation, draw(st.integers(0, 3)), draw(st.booleans()),
        draw(st.integers(0, 99)),
    )  # fmt: skip


@st.composite
def sequences(draw):
    made = draw(st.lists(calls(), min_size=1, max_size=6))
    return made, draw(st.permutations(range(len(made))))


def check(ranks, count, **options):
    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck), **options)
    @given(sequences())
    def compare(sequence):
        wrong = "\n".join(filter(None, ranks.run(properties.make, *sequence)))
        assert not wrong, wrong

    compare()


@pytest.mark.parametrize("size", ["two", "three"])
def test_any_sequence(request, size):
    check(request.getfixturevalue(size), FEW, derandomize=True)


@pytest.mark.endurance
@pytest.mark.parametrize("size", SIZES)
def test_many_sequences(request, size):
    check(request.getfixturevalue(size), MANY, print_blob=True)
