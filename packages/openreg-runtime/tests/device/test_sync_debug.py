# SPDX-License-Identifier: BSD-3-Clause
"""The sync debug mode warns about waits for a stream, or refuses them."""

import pytest

from openreg_runtime import openreg


@pytest.fixture(autouse=True)
def default_mode(clean_device):
    yield
    openreg.set_sync_debug_mode("default")


@pytest.mark.covers("module.get_sync_debug_mode")
@pytest.mark.parametrize(("mode", "number"), [(0, 0), (1, 1), (2, 2), ("default", 0), ("warn", 1), ("error", 2)])
def test_a_mode_has_a_number_and_a_name(mode, number):
    openreg.set_sync_debug_mode(mode)
    assert openreg.get_sync_debug_mode() == number


@pytest.mark.parametrize("mode", [3, -1, "warning", "", None, 1.5])
def test_another_mode_is_refused_and_changes_nothing(mode):
    openreg.set_sync_debug_mode(1)
    with pytest.raises(ValueError, match="'default', 'warn', 'error'"):
        openreg.set_sync_debug_mode(mode)
    assert openreg.get_sync_debug_mode() == 1


@pytest.mark.covers("module.set_sync_debug_mode")
def test_a_wait_for_a_stream_is_warned_of():
    openreg.set_sync_debug_mode("warn")
    with pytest.warns(UserWarning, match="waits"):
        openreg.current_stream().synchronize()


@pytest.mark.covers("module.set_sync_debug_mode")
def test_a_wait_for_a_stream_is_refused_before_it_begins(gate):
    gate.close()
    openreg.set_sync_debug_mode("error")
    with pytest.raises(RuntimeError, match=r"set_sync_debug_mode\(0\)"):
        openreg.current_stream().synchronize()
    assert not openreg.current_stream().query()


def test_waits_that_say_so_are_allowed():
    openreg.set_sync_debug_mode("error")
    openreg.synchronize()
    openreg.current_stream().record_event().synchronize()
    openreg.empty_cache()
