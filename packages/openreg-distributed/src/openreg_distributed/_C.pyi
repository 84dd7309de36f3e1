# SPDX-License-Identifier: BSD-3-Clause
# The native process group (process_group.h), and the records of the flight recorder (trace.h).
from datetime import timedelta

import torch
from torch.distributed.distributed_c10d import Backend

from openreg_distributed.options import Options

def _dump_trace(stacks: bool, only_active: bool) -> bytes: ...

class ProcessGroupOccl(Backend):
    def __init__(self, transport: Backend, timeout: timedelta, copies_operands: bool, token: str) -> None: ...
    @property
    def options(self) -> Options: ...
    def perform_nocolor_split(self, device: torch.device) -> None: ...
