# SPDX-License-Identifier: BSD-3-Clause
"""The disk cache of compiled code works with concurrent compilations and after a process was killed in one."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

# Twenty functions in four threads; each result is checked.
PROGRAM = textwrap.dedent(
    """
    import threading
    import openreg_compile, torch

    def work(thread):
        for k in range(5):
            factor = 5 * thread + k + 2
            x = torch.full((4, 6), float(thread + 1), device="openreg")
            y = torch.compile(lambda x: (x * factor).relu().sum(1) + k)(x)
            assert y.tolist() == [6.0 * factor * (thread + 1) + k] * 4, (thread, k, y)

    torch._dynamo.config.recompile_limit = 100
    failures = []
    threading.excepthook = lambda failure: failures.append(failure.exc_value)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    print("all right")
    """
)

# A moment in the life of a cache, as the pattern of a file that is written then.
MOMENTS = {"the header that all kernels share": "**/precompiled_headers/**/*.h", "the first kernel": "**/*.main.cpp"}


@contextlib.contextmanager
def started(cache):
    """The program on its way. The end of the block kills it with all processes that it has started."""
    temporary = cache / "temporary"  # where Inductor keeps the shared header
    temporary.mkdir(exist_ok=True)
    settings = {
        **os.environ,
        "TMPDIR": str(temporary),
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        "TORCHINDUCTOR_COMPILE_THREADS": "2",
    }
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env=settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):  # all have ended
                os.killpg(process.pid, signal.SIGKILL)


def check(cache):
    with started(cache) as process:
        output, errors = process.communicate(timeout=280)
    assert output == "all right\n", errors


@pytest.mark.endurance
def test_twenty_compilations_in_four_threads_and_once_more_from_the_cache(tmp_path):
    check(tmp_path)
    check(tmp_path)


@pytest.mark.endurance
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_compilation_leaves_nothing_broken(tmp_path, moment):
    with started(tmp_path) as process:
        deadline = time.monotonic() + 200
        while not list(tmp_path.glob(MOMENTS[moment])):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, sorted(tmp_path.rglob("*"))
            time.sleep(0.01)  # between two looks at the folder
    check(tmp_path)
