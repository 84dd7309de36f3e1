# SPDX-License-Identifier: BSD-3-Clause
"""Imports for the interpreter from which the tests fork their runs, as imports take most of the time of a short run.

pytest imports its plug-ins itself, in a run without tests, because it rewrites their assertions.
"""

import contextlib
import io
import os
import tempfile

import pytest
import torch._dynamo  # noqa: F401  (which optimizers and torch.testing import when they are first used)


class Further:
    """A plug-in that imports what that of openreg-testing imports late."""

    @staticmethod
    def pytest_load_initial_conftests():
        import openreg_testing.plugin.cuda_asked
        import openreg_testing.plugin.cuda_names
        import openreg_testing.plugin.devices
        import openreg_testing.plugin.isolated
        import openreg_testing.plugin.isolation_marks
        import openreg_testing.plugin.loss
        import openreg_testing.workers.server  # noqa: F401


with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
    # xdist gives its workers the sys.path of its own import, so each run imports it.
    without = [argument for name in ("cacheprovider", "xdist", "xdist.looponfail") for argument in ("-p", f"no:{name}")]
    pytest.main(["-c", os.devnull, "--rootdir", folder, *without, folder], plugins=[Further])
