# SPDX-License-Identifier: BSD-3-Clause
"""Launchers of torchrun, all at the same time: a program for an interpreter that has imported torch, which it forks.

Its argument is a list in JSON of what each one needs: the arguments of torchrun, further environment variables, and the
name of a network namespace, or none. The exit status is the number of launchers that failed.
"""

import json
import os
import subprocess
import sys
import traceback

import torch
from _platform import HAS_FORK, enter_network_namespace, in_later_children
from torch.distributed import run


def launch(namespace, environment, arguments):
    """Starts a launcher; gives what waits for it and tells whether it failed."""
    if not HAS_FORK:
        command = [sys.executable, "-m", "torch.distributed.run", *arguments]
        return subprocess.Popen(command, env={**os.environ, **environment}).wait
    child = os.fork()
    if child != 0:
        return lambda: os.waitpid(child, 0)[1]
    status = 1
    try:
        if namespace:
            enter_network_namespace(namespace)
        os.environ.update(environment)
        run.main(arguments)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)


# PyTorch makes its pool of threads anew in the first call after a fork, and not thread-safely: autograd's threads would
# make that call at the same time. One is how many torchrun gives to each of several ranks.
in_later_children(lambda: torch.set_num_threads(1))
waiting = [launch(*one) for one in json.loads(sys.argv[1])]
sys.exit(sum(wait() != 0 for wait in waiting))
