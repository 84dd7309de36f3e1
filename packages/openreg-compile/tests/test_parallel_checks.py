# SPDX-License-Identifier: BSD-3-Clause
"""The source of a kernel with checks in parallel loops is rewritten so that an exception leaves the loop correctly."""

import pytest

from openreg_compile.parallel_checks import keep_failures

KERNEL = """
extern "C"  void  kernel(const int64_t* in_ptr0,
                       float* out_ptr0)
{{
    #pragma omp parallel
    {{
        {loops}
    }}
}}
"""
ONE = "#pragma omp for\nfor(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(8L); x0+=1L)\n{{ {body} }}"
TWO = (
    "#pragma omp for collapse(2)\nfor(int64_t x0=0L; x0<8L; x0+=1L)\n{{\n"
    "for(int64_t x1=0L; x1<(8L); x1+=1L)\n{{ {body} }}\n}}"
)
CHECK = 'TORCH_CHECK((0 <= tmp0) & (tmp0 < 8L), "index out of bounds: 0 <= tmp0 < 8L"); { out_ptr0[x0] = 1; }'


def kernel(*loops):
    return KERNEL.format(loops="\n".join(loops))


@pytest.mark.parametrize("loop", [ONE, TWO])
def test_what_a_loop_repeats_keeps_its_exception(loop):
    source = keep_failures(kernel(loop.format(body=CHECK), loop.format(body=CHECK)))
    kept = f"{{ try {{ {CHECK} }} catch (...) {{ openreg_failure.keep(); }} }}"
    assert source.count(kept) == 2
    assert source.index("FirstException openreg_failure;") < source.index("#pragma omp parallel")
    assert source.rstrip().endswith("openreg_failure.rethrow();\n}")


def test_loops_without_a_check_stay():
    source = kernel(ONE.format(body="out_ptr0[x0] = 1;"))
    assert keep_failures(source) == source


def test_a_check_outside_of_a_parallel_loop_throws_as_it_does():
    source = 'extern "C" void kernel(float* out_ptr0)\n{ for(;;) { TORCH_CHECK(false, "so"); } }'
    assert keep_failures(source) == source


def test_a_source_that_is_cut_off_is_refused():
    with pytest.raises(ValueError, match="has no '}'"):
        keep_failures(kernel(ONE.format(body=CHECK)).rstrip()[:-1])
