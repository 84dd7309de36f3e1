# SPDX-License-Identifier: BSD-3-Clause
"""Every operator with a kernel for the CPU alone has a kernel on the device or a documented reason."""

import torch
from parity import check

# What PyTorch makes of other kernels for any device.
COMPOSITES = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")

OF_THE_CPU = "a way of the CPU alone; every device has another, which PyTorch chooses by itself"
OF_MEMORY = "memory of the host, as its name says"
OF_TESTS = "PyTorch's own tests call it"
OUT_ALONE = "an out= form that only the CPU has; it falls back"
OLD = "PyTorch keeps it for old programs; it falls back"

LEFT = {
    "_add_relu": "quantized kernels of mobile builds",
    "_aminmax": OLD,
    "_batch_norm_with_update.out": OUT_ALONE,
    "_compute_linear_combination": "a step of matrix_exp, which is one launch here",
    "_foobar": OF_TESTS,
    "_make_dep_token": "a tensor of the CPU, whatever the device",
    "_nested_compute_contiguous_strides_offsets": "sizes, which are on the host",
    "_slow_conv2d": OF_THE_CPU,
    "_test_": OF_TESTS,
    "batch_norm_update_stats": OLD,
    "from_file": OF_MEMORY,
    "mvlgamma.out": OUT_ALONE,
    "narrow_copy.out": OUT_ALONE,
    "quantized_gru": OLD,
    "quantized_lstm": OLD,
    "range.out": OLD,
    "slow_conv": OF_THE_CPU,
    "sspaddmm.out": OUT_ALONE,
    "to_mkldnn": OF_MEMORY,
}


def test_every_kernel_of_the_cpu_has_one_here_or_a_reason():
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    missing = {
        name.removeprefix("aten::")
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::")
        and has(name, "CPU")
        and not any(has(name, key) for key in ("PrivateUse1", *COMPOSITES))
    }
    unexplained = {name for name in missing if not name.startswith(tuple(LEFT))}
    stale = {begin for begin in LEFT if not any(name.startswith(begin) for name in missing)}
    assert (unexplained, stale) == (set(), set())


def test_what_falls_back_gives_the_cpus_results():
    x = torch.rand(3, 4) + 2
    check(lambda t: torch.mvlgamma(t, 2, out=torch.empty(0, device=t.device)), x)
    check(lambda t: torch.ops.aten.narrow_copy.out(t, 1, 1, 2, out=torch.empty(0, device=t.device)), x)
    check(lambda t: torch.ops.aten.range.out(0, 3, 1, out=torch.empty(0, device=t.device)), x)

    def update(t):
        running = torch.zeros(4, device=t.device), torch.ones(4, device=t.device)
        return (*torch.batch_norm_update_stats(t, *running, 0.1), *running)

    check(update, x)
