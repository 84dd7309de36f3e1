# SPDX-License-Identifier: BSD-3-Clause
"""Environment variables have their documented effect, and other values are refused with the accepted form."""

import pytest
from driver._platform import IS_POSIX

ACCEPTED = [
    ("OPENREG_DEVICE_COUNT", "1", "torch.openreg.device_count() == 1"),
    ("OPENREG_DEVICE_COUNT", "64", "torch.openreg.Stream(63).device_index == 63"),
    ("OPENREG_DEVICE_MEMORY", "64MiB", "torch.openreg.mem_get_info() == (64 << 20, 64 << 20)"),
    ("OPENREG_DEVICE_MEMORY", "4194304", "torch.openreg.get_device_properties(1).total_memory == 4 << 20"),
]


@pytest.mark.parametrize(("name", "value", "effect"), ACCEPTED)
def test_an_accepted_value_has_its_effect(succeed, name, value, effect):
    script = f"import torch, openreg_runtime\nassert {effect}"
    succeed(script, env={name: value})


@pytest.mark.parametrize("number", ["1", "1024"])
def test_kernels_run_on_the_number_of_threads(succeed, number):
    """A kernel, launched as generated code launches it, asks PyTorch."""
    succeed(
        f"""
        import ctypes, torch, openreg_runtime
        from ctypes import POINTER, c_char_p, c_int, c_size_t, c_ssize_t, c_uint, c_void_p

        Kernel = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)

        class Launch(ctypes.Structure):
            _fields_ = [
                ("size", c_size_t), ("stream", c_void_p), ("device", c_int), ("name", c_char_p), ("function", Kernel),
                ("arguments", c_void_p), ("arguments_size", c_size_t), ("arguments_alignment", c_size_t),
                ("operands", c_void_p), ("operand_count", c_size_t),
            ]

        class Entry(ctypes.Structure):
            _fields_ = [
                ("size", c_size_t), ("version", c_uint), ("kernel_view_offset", c_ssize_t),
                ("launch", ctypes.CFUNCTYPE(c_int, POINTER(Launch))),
            ]

        @Kernel
        def kernel(*_):
            numbers.append(torch.get_num_threads())
            return 0

        numbers = []
        launch = Launch(ctypes.sizeof(Launch), None, -1, b"asks", kernel)
        assert Entry.from_address(openreg_runtime.launch_entry().address).launch(ctypes.byref(launch)) == 0
        torch.accelerator.synchronize()
        assert numbers == [{number}], numbers
        """,
        env={"OPENREG_NUM_THREADS": number},
    )


REFUSED = [
    ("OPENREG_DEVICE_COUNT", "0", "a whole number from 1 to 64"),
    ("OPENREG_DEVICE_COUNT", "65", "a whole number from 1 to 64"),
    ("OPENREG_DEVICE_COUNT", "two", "a whole number from 1 to 64"),
    ("OPENREG_DEVICE_COUNT", "", "a whole number from 1 to 64"),
    ("OPENREG_DEVICE_MEMORY", "8 apples", "a size from 2MiB to 1024GiB"),
    ("OPENREG_DEVICE_MEMORY", "-1", "a size from 2MiB to 1024GiB"),
    ("OPENREG_LAUNCH_BLOCKING", "yes", "0 or 1"),
    ("OPENREG_POISON", "2", "0 or 1"),
    ("OPENREG_POISON", "", "0 or 1"),
    ("OPENREG_SCHEDULE_TIMEOUT", "0", "a whole number of seconds from 1 to 3600"),
    ("OPENREG_SCHEDULE_TIMEOUT", "3601", "a whole number of seconds from 1 to 3600"),
    ("OPENREG_SCHEDULE_TIMEOUT", "0.5", "a whole number of seconds from 1 to 3600"),
    ("OPENREG_NUM_THREADS", "0", "a whole number from 1 to 1024"),
    ("OPENREG_NUM_THREADS", "1025", "a whole number from 1 to 1024"),
    ("OPENREG_NUM_THREADS", "4 ", "a whole number from 1 to 1024"),
    ("OPENREG_NUM_THREADS", "", "a whole number from 1 to 1024"),
]


@pytest.mark.parametrize(("name", "value", "form"), REFUSED)
def test_a_refused_value_is_named_with_the_accepted_form(succeed, name, value, form):
    succeed(
        f"""
        import torch, openreg_runtime
        for use in (torch.openreg.init, lambda: torch.UntypedStorage(8, device="openreg")) * 2:
            try:
                use()
            except (RuntimeError, ValueError) as error:
                for part in ({name!r}, repr({value!r}), {form!r}, "unset it"):
                    assert part in str(error), (part, error)
            else:
                raise AssertionError("not refused")
        assert not torch.openreg.is_initialized()
        assert (torch.ones(2) + 1).tolist() == [2, 2]
        """,
        env={name: value},
    )


ALLOCATOR_REFUSED = [
    ("PYTORCH_ALLOC_CONF", "nonsense:1", "Unrecognized key 'nonsense' in Accelerator allocator config"),
    ("PYTORCH_ALLOC_CONF", "garbage_collection_threshold:7", "garbage_collect_threshold is invalid"),
    ("PYTORCH_ALLOC_CONF", "max_split_size_mb", "Index out of bounds in ConfigTokenizer"),
    ("PYTORCH_ALLOC_CONF", "max_split_size_mb:[1", "stoull"),
    ("PYTORCH_ALLOC_CONF", "per_process_memory_fraction:5", "per_process_memory_fraction:5 is not accepted; give a"),
    ("PYTORCH_CUDA_ALLOC_CONF", "nonsense:1", "Unrecognized key 'nonsense' in Accelerator allocator config"),
]


@pytest.mark.parametrize(("name", "value", "reason"), ALLOCATOR_REFUSED)
def test_a_refused_setting_of_pytorchs_allocators_is_named_too(succeed, name, value, reason):
    succeed(
        f"""
        import torch, openreg_runtime
        pin = lambda: torch.ones(2).pin_memory()
        for use in (torch.openreg.init, lambda: torch.UntypedStorage(8, device="openreg"), pin) * 2:
            try:
                use()
            except ValueError as error:
                start = "environment variable {name}={value!r} is not accepted: " + {reason!r}
                assert str(error).startswith(start), error
                end = "; correct it (the form is key:value,key:value) or unset it, and start the process again"
                assert str(error).endswith(end), error
            else:
                raise AssertionError("not refused")
        assert not torch.openreg.is_initialized()
        """,
        env={name: value},
    )


def test_a_setting_that_a_program_makes_too_early_is_not_taken_for_the_environments(succeed):
    succeed(
        """
        import torch, openreg_runtime
        for use in (torch.openreg.memory._set_allocator_settings, lambda _: torch.openreg.init()):
            try:
                use("per_process_memory_fraction:5")
            except ValueError as error:
                start = "PYTORCH_ALLOC_CONF: per_process_memory_fraction:5 is not accepted; give a number from 0 to 1"
                assert str(error).startswith(start), error
            else:
                raise AssertionError("not refused")
        torch.openreg.memory._set_allocator_settings("per_process_memory_fraction:0.5")
        torch.openreg.init()
        """,
        env={"PYTORCH_ALLOC_CONF": "max_split_size_mb:64"},
    )


@pytest.mark.covers("accelerator_hooks.isAvailable")
def test_a_refused_device_count_means_no_device_and_a_warning_says_why(succeed):
    succeed(
        """
        import warnings, torch, openreg_runtime
        for is_available in (torch.openreg.is_available, torch.accelerator.is_available):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("default")
                assert [is_available() for _ in range(3)] == [False] * 3
            (warning,) = caught  # once, though asked three times
            assert warning.category is RuntimeWarning
            text = str(warning.message)
            start = "no openreg device is available: environment variable OPENREG_DEVICE_COUNT='many' is not accepted"
            assert text.startswith(start), text
        try:
            torch.openreg.device_count()
        except RuntimeError as error:
            assert str(error).startswith("environment variable OPENREG_DEVICE_COUNT='many'"), error
        else:
            raise AssertionError("not refused")
        """,
        env={"OPENREG_DEVICE_COUNT": "many"},
    )


@pytest.mark.skipif(not IS_POSIX, reason="only there is an environment variable made of bytes")
@pytest.mark.parametrize("name", ["OPENREG_DEVICE_COUNT", "OPENREG_OF_ANOTHER_PACKAGE", "PYTORCH_ALLOC_CONF"])
def test_a_value_that_is_no_text_is_named_at_the_import(succeed, name):
    succeed(
        f"""
        import torch
        try:
            import openreg_runtime
        except ImportError as error:
            start = "environment variable {name}='a\\\\udcff' is not accepted: its bytes are not UTF-8"
            assert str(error).startswith(start), error
            assert "unset it" in str(error)
        else:
            raise AssertionError("not refused")
        assert not hasattr(torch, "openreg")
        """,
        env={name: "a\udcff"},
    )


def test_a_value_beyond_ascii_is_quoted_as_it_is(succeed):
    succeed(
        """
        import torch, openreg_runtime
        try:
            torch.openreg.device_count()
        except RuntimeError as error:
            assert "OPENREG_DEVICE_COUNT='zw\u00f6lf' is not accepted" in str(error), error
        else:
            raise AssertionError("not refused")
        """,
        env={"OPENREG_DEVICE_COUNT": "zw\u00f6lf"},
    )
