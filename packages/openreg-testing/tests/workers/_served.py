# SPDX-License-Identifier: BSD-3-Clause
"""Functions that the workers of test_forks.py run, whether forked or started."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

from openreg_testing import forks


def serve(request):
    name, *arguments = request
    return globals()[name](*arguments)


def echo(value):
    return value


def process():
    return os.getpid(), os.getppid()


def environment(name):
    return os.environ.get(name)


def say(text):
    print(text, flush=True)
    return len(text)


def parts(count):
    for number in range(count):
        forks.send_part(number)
    return count


def crash():
    print("before the crash", flush=True)
    ctypes.string_at(0)


def crash_after_a_crash():
    for number in range(100):
        print(f"line {number}")
    print("Fatal Python error: of a child", flush=True)
    crash()


def leave(status):
    print("before the exit", end="")  # streams are flushed at the end of each line
    sys.exit(status)


def leave_at_once(status):
    os._exit(status)


def hang():
    time.sleep(3600)


def hang_for_good():
    signal.signal(signal.SIGABRT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(3600)


def fail():
    raise LookupError("no such thing")


def unpicklable():
    return threading.Lock()


def start_child():
    """A child that outlives the request, holding what it inherited."""
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], close_fds=False).pid


def fork_child_and_crash():
    child = os.fork()
    if child == 0:
        time.sleep(3600)
    ctypes.string_at(0)


def is_initialized():
    import torch

    return torch.openreg.is_initialized()


def add_on_device():
    import torch

    return (torch.ones(3, device="openreg") + 1).tolist()


def backward():
    import torch

    x = torch.ones(300, 300, requires_grad=True)
    (x @ x).sum().backward()
    return x.grad[0, 0].item()


def imports(module):
    """Whether the module had been imported before."""
    before = module in sys.modules
    __import__(module)
    return before
