# SPDX-License-Identifier: BSD-3-Clause
"""A failed check in a loop of a kernel leaves no parallel loop, and arrives as the error of the kernel."""

import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor import config, metrics
from torch._inductor.codegen.cpp import ReasonFusedNodes
from torch._inductor.exc import InductorError
from torch._inductor.utils import run_and_get_code

from openreg_compile import scheduling

DEVICE = "openreg"

pytestmark = pytest.mark.filterwarnings("ignore:::torch")


@pytest.fixture(autouse=True)
def forget():
    """A test compiles its functions itself."""
    torch._dynamo.reset()


def source_of(function, *args):
    with config.patch(force_disable_caches=True):
        _, code = run_and_get_code(torch.compile(function, fullgraph=True), *args)
    return code[0]


def indent(line):
    return len(line) - len(line.lstrip())


def is_in_try(lines, number):
    """Whether a block around a line is that of a ``try``; blocks of generated code are indented."""
    inner = indent(lines[number])
    for above in range(number - 1, 0, -1):
        if lines[above].strip() and indent(lines[above]) < inner:
            inner = indent(lines[above])
            if lines[above].strip() == "{" and lines[above - 1].strip() == "try":
                return True
    return False


def unguarded_checks(source):
    lines = source.splitlines()
    return [line for number, line in enumerate(lines) if "TORCH_CHECK(" in line and not is_in_try(lines, number)]


def ones(*sizes, dtype=torch.float32):
    return torch.ones(sizes, dtype=dtype, device=DEVICE)


# Functions of a tensor, a table of 100 rows or elements, and an index. The values are the function, the size of the
# table's rows and the number of indices.
LOOPS = {
    "a nest of loops": (lambda x, table, index: table[index].sin(), (40,), 5000),
    "loops of numbers that are not vectorized": (lambda x, table, index: (table[index] > 0).double(), (3,), 5000),
    "a reduction in a loop": (lambda x, table, index: table[index].sum(1), (40,), 5000),
    "a parallel reduction": (lambda x, table, index: table[index].sum(), (), 200_000),
    "outer loops that are fused": (lambda x, table, index: (x + table[index]).softmax(1), (), 400),
    "tiles": (lambda x, table, index: x.t() + table[index], (), 500),
    "a loop with a condition": (lambda x, table, index: torch.nn.functional.pad(table[index], (3, 3)), (), 5000),
    "one iteration": (lambda x, table, index: table[index] + 1, (), 1),
}


@pytest.mark.parametrize("kind", LOOPS)
def test_a_failed_check_in_a_loop_is_the_error_of_its_kernel_and_of_that_launch_only(kind):
    function, row, count = LOOPS[kind]
    x, table, index = ones(500, 400), ones(100, *row), torch.zeros(count, dtype=torch.int64, device=DEVICE)
    source = source_of(function, x, table, index)
    assert "TORCH_CHECK(" in source
    assert unguarded_checks(source) == []
    compiled = torch.compile(function, fullgraph=True)
    expected = compiled(x, table, index).cpu()
    index[count // 2] = 100
    compiled(x, table, index)
    with pytest.raises(torch.AcceleratorError, match=r"cpp_fused.*index out of bounds"):
        torch.accelerator.synchronize()
    torch.openreg.reset_device()
    index.zero_()
    assert torch.equal(compiled(x, table, index).cpu(), expected)


def test_a_failed_check_after_the_loop_of_a_reduction_is_the_error_of_its_kernel(monkeypatch):
    """Inductor can generate what an outer loop does after a reduction, but fuses no such nodes; this test lets it."""
    why = scheduling.Scheduling._why_fuse_nodes

    def fuse_suffix(self, node1, node2):
        _, (vars1, reduce1) = node1.group
        _, (vars2, reduce2) = node2.group
        is_suffix = vars1 == vars2 and reduce1 != () and reduce2 == ()
        return ReasonFusedNodes.SAME_VARS_REDUCE if is_suffix else why(self, node1, node2)

    monkeypatch.setattr(scheduling.Scheduling, "_why_fuse_nodes", fuse_suffix)
    monkeypatch.setattr(scheduling.Scheduling, "can_fuse_vertical", scheduling.Scheduling._can_fuse_horizontal_impl)
    monkeypatch.setattr(scheduling.Scheduling, "can_fuse_vertical_outer_loop", lambda self, node1, node2: False)

    def function(x, table, index):
        return x.sum(1) * table[index]

    index = torch.zeros(5000, dtype=torch.int64, device=DEVICE)
    with config.patch({"force_disable_caches": True, "cpp.simdlen": 1}):
        compiled = torch.compile(function, fullgraph=True)
        _, code = run_and_get_code(compiled, ones(5000, 40), ones(100), index)
    assert code[0].count("#pragma omp for") == 1
    assert code[0].index("tmp_acc0 = tmp_acc0 +") < code[0].index("TORCH_CHECK(")
    assert unguarded_checks(code[0]) == []
    index[77] = 100
    compiled(ones(5000, 40), ones(100), index)
    with pytest.raises(torch.AcceleratorError, match="index out of bounds"):
        torch.accelerator.synchronize()
    torch.openreg.reset_device()


def test_loops_with_checks_are_vectorized():
    before = metrics.generated_cpp_vec_kernel_count
    source = source_of(lambda table, index: table[index].sin(), ones(100), torch.zeros(5000, dtype=int, device=DEVICE))
    assert metrics.generated_cpp_vec_kernel_count == before + 1
    assert source.index("try") < source.index("at::vec::Vectorized<float>::loadu") < source.index("catch (...)")


def test_kernels_without_checks_are_those_of_the_cpu():
    source = source_of(lambda x: x.sin().sum(1), ones(500, 400))
    assert "openreg_failure" not in source


def test_a_check_outside_of_a_try_is_found():
    source = 'void kernel()\n{\n    {\n        TORCH_CHECK(false, "so");\n    }\n}'
    assert unguarded_checks(source) == ['        TORCH_CHECK(false, "so");']
    assert unguarded_checks(source.replace("{\n    {", "{\n    try\n    {")) == []


def relu_of_product(device):
    a, b = (torch.randn(2, 64, 64, device=device) for _ in range(2))
    # Without ATEN, the kernels of ATen do not compete: the faster one would be taken.
    settings = {"force_disable_caches": True, "max_autotune": True, "max_autotune_gemm_backends": "CPP"}
    with torch.no_grad(), config.patch(settings):
        torch.compile(lambda a, b: (a @ b).relu())(a, b)


def test_templates_whose_loops_other_classes_generate_are_for_the_cpu_only():
    counters.clear()
    relu_of_product("cpu")
    assert counters["inductor"]["cpp_templated_kernel_counter"] == 1
    with pytest.raises(InductorError, match="No choices exist for backend"):
        relu_of_product(DEVICE)
