from datetime import timedelta

from torch.distributed.distributed_c10d import Backend

class ProcessGroupOccl(Backend):
    def __init__(self, transport: Backend, timeout: timedelta) -> None: ...
