# SPDX-License-Identifier: BSD-3-Clause
"""The device is registered with Inductor at its first use, and options that are not available raise clear errors."""

import re

import pytest
import torch
from torch._inductor.utils import run_and_get_code
from torch.export.passes import move_to_device_pass

from openreg_compile import registration

DEVICE = "openreg"

pytestmark = pytest.mark.filterwarnings("ignore:::torch")


def test_import_torch_imports_no_compiler(python):
    code = "import sys, openreg_compile; print('torch' in sys.modules, 'torch._inductor' in sys.modules)"
    done = python(code, fresh=True)
    assert done.stdout == "True False\n", done.stderr


@pytest.mark.parametrize(
    "first",
    [
        pytest.param("openreg_compile.registration", marks=pytest.mark.endurance),
        pytest.param("openreg_compile.kernels", marks=pytest.mark.endurance),
        "torch._inductor.scheduler",
    ],
)
def test_the_order_of_imports_does_not_matter(python, first):
    done = python(
        f"import openreg_compile, {first}\n"
        "from torch._inductor.codegen import common\n"
        "common.init_backend_registration()\n"
        "print(common.get_backend_features('openreg') == common.get_backend_features('cpu'))"
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_the_same_code_is_generated_where_inductor_was_imported_before_the_device(python):
    """Inductor reads once, while it is imported, which devices are GPUs."""
    code = """
        import torch
        import {}
        import {}
        import torch._inductor.config
        torch._inductor.config.compile_threads = 1  # no further processes
        from torch._inductor.utils import GPU_TYPES, run_and_get_code
        x = torch.ones(3, device="openreg")
        result, (code,) = run_and_get_code(torch.compile(lambda x: x * 2.25 + 1), x)
        print(result.tolist(), "openreg" in GPU_TYPES)
        print(code)
    """
    before = python(code.format("torch._inductor.utils", "openreg_compile"))
    after = python(code.format("openreg_compile", "torch._inductor.utils"))
    assert before.stdout.startswith("[3.25, 3.25, 3.25] False\n"), before.stderr
    assert before.stdout == after.stdout, after.stderr


@pytest.mark.covers("module._inductor_backend_init")
def test_inductor_calls_the_devices_module_where_nothing_is_registered(python):
    done = python(
        """
        import torch
        import openreg_compile
        torch.openreg._inductor_backend_init()  # Inductor is not imported yet; older releases never call it
        torch.openreg._inductor_backend_init()
        from torch._inductor.codegen import common
        common.init_backend_registration()
        print(common.get_scheduling_for_device("openreg").__module__)
        """
    )
    assert (done.stdout, done.stderr) == ("openreg_compile.registration\n", "")


@pytest.mark.covers("registration.register_device_op_overrides")
def test_what_generated_python_says_of_devices_is_python():
    ops = registration.DeviceOps()
    lines = [ops.import_get_raw_stream_as("raw"), "handle = raw(0)", ops.synchronize(), ops.set_device(0)]
    found = {"torch": torch}
    exec("\n".join([*lines, f"with {ops.device_guard(0)}: pass"]), found)
    assert found["handle"] == torch.openreg.current_stream(0).native_handle


@pytest.mark.covers("registration.device_custom_pass of register_backend_for_device")
def test_other_backends_of_pytorch_need_no_compiler_and_inductor_says_what_to_install(python, tmp_path):
    done = python(
        """
        import torch._inductor.config
        torch._inductor.config.compile_threads = 1  # no further processes
        import openreg_compile, torch
        for backend in ("eager", "aot_eager", "inductor"):
            function = torch.compile(lambda x: x * 2 + 1, backend=backend)
            print(function(torch.ones(3, device="openreg")).tolist(), flush=True)
        """,
        CXX=str(tmp_path / "no-such-compiler"),
    )
    assert done.stdout == "[3.0, 3.0, 3.0]\n" * 2, done.stderr
    assert "no C++ compiler works here. Install one, such as g++" in done.stderr


@pytest.mark.covers("registration.device_custom_pass of register_backend_for_device")
def test_code_of_another_version_is_not_taken_from_the_cache(python):
    code = """
        import torch._inductor.config
        torch._inductor.config.compile_threads = 1  # no further processes
        import openreg_compile, openreg_runtime, torch
        from torch._dynamo.utils import counters

        def hits():
            torch._dynamo.reset()
            counters.clear()
            y = torch.compile(lambda x: x * 2.75 + 1)(torch.ones(3, device="openreg"))
            assert y.tolist() == [3.75] * 3
            return counters["inductor"]["fxgraph_cache_hit"]

        print(hits())
        plugins = openreg_runtime.installed_plugins()
        openreg_runtime.installed_plugins = lambda: plugins[:1]
        from openreg_compile.registration import versions
        versions.cache_clear()
        print(hits(), hits())
    """
    first, second = python(code), python(code)
    assert (first.stdout, second.stdout) == ("0\n0 1\n", "1\n1 1\n"), first.stderr + second.stderr


def test_a_folder_that_cannot_be_written_to_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "file" / "cache"))
    torch._dynamo.reset()
    with pytest.raises(Exception, match=re.escape(str(tmp_path / "file"))):
        torch.compile(lambda x: x * 3.25 + 1)(torch.ones(3, device=DEVICE))


REFUSED = {"cpp_wrapper": "C++ wrapper, and with it AOTInductor", "fx_wrapper": "FX wrapper"}


@pytest.mark.parametrize("option", REFUSED)
def test_what_is_not_available_is_refused_with_the_way_out(option):
    torch._dynamo.reset()
    with pytest.raises(Exception, match=f"Inductor's {re.escape(REFUSED[option])}.*ompile with"):
        torch.compile(lambda x: x + 1, options={option: True})(torch.ones(3, device=DEVICE))


def test_the_kernels_of_flex_attention_are_refused_with_the_devices_name():
    from torch.nn.attention.flex_attention import flex_attention

    q = torch.randn(1, 1, 128, 16, device=DEVICE)
    with pytest.raises(Exception, match=f"FlexAttention .* {DEVICE}"):
        torch.compile(flex_attention)(q, q, q)


def test_autotuning_leaves_products_to_the_operators():
    torch._dynamo.reset()
    x = torch.randn(8, 8, device=DEVICE)
    result, (code,) = run_and_get_code(torch.compile(lambda x: (x @ x).relu(), mode="max-autotune-no-cudagraphs"), x)
    torch.testing.assert_close(result, (x @ x).relu())
    assert "extern_kernels.mm(" in code


def test_a_device_that_is_not_there_is_refused():
    torch._dynamo.reset()
    absent = f"{DEVICE}:{torch.openreg.device_count()}"
    with pytest.raises(Exception, match="device"):
        torch.compile(lambda x: x.to(absent) + 1)(torch.ones(3, device=DEVICE))


def test_the_key_of_the_cache_names_the_packages():
    name = registration._PreCodegenPass().uuid()
    assert all(package in name for package in ("openreg-compile ", "openreg-ops ", "openreg-runtime "))


def test_the_key_of_the_cache_tells_one_thread_from_several(set_threads):
    keys = []
    for count in (1, 2, 3):
        set_threads(count)
        keys.append(registration._PreCodegenPass().uuid())
    assert keys[0] != keys[1] == keys[2]


def test_exported_programs_run_on_the_device(tmp_path):
    class Model(torch.nn.Module):
        def forward(self, x):
            return (x * 2).softmax(-1) + x.shape[0]

    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(Model(), (torch.ones(4, 3, device=DEVICE),), dynamic_shapes={"x": {0: batch}})
    torch.export.save(program, tmp_path / "model.pt2")
    loaded = torch.export.load(tmp_path / "model.pt2")
    x = torch.randn(7, 3, device=DEVICE)
    for module in (loaded.module(), torch.compile(loaded.module())):
        torch.testing.assert_close(module(x), Model()(x))
    moved = move_to_device_pass(loaded, "cpu")
    torch.testing.assert_close(moved.module()(x.cpu()), Model()(x.cpu()))
    back = move_to_device_pass(moved, DEVICE)
    torch.testing.assert_close(back.module()(x), Model()(x))
