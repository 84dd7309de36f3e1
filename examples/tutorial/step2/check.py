# SPDX-License-Identifier: BSD-3-Clause
"""Shows what step 2 can do. The exit status is 0 if all of it is right."""

import torch
import torch_pocket  # noqa: F401 - makes the device known to PyTorch

assert torch.pocket.device_count() == torch.accelerator.device_count() == 2
torch.accelerator.set_device_index(1)
assert torch.pocket.current_device() == 1
with torch.pocket.device("pocket:0"):
    assert torch.pocket.current_device() == 0
assert torch.pocket.current_device() == 1
print("two devices, and the current one can be changed")

try:
    torch.accelerator.set_device_index(2)
except RuntimeError as error:
    print("a third is refused:", str(error).splitlines()[0])
else:
    raise AssertionError("pocket:2 was accepted")

storage = torch.UntypedStorage(1000, device="pocket:1")
assert storage.device == torch.device("pocket", 1)
assert torch.accelerator.memory_allocated(1) == 1000
assert torch.accelerator.memory_allocated(0) == 0
storage.resize_(2000)
assert torch.accelerator.memory_allocated(1) == 2000
del storage
assert torch.accelerator.memory_allocated(1) == 0
assert torch.accelerator.max_memory_allocated(1) == 3000
print("memory is allocated, resized, freed and counted per device")

try:
    torch.UntypedStorage(1 << 40, device="pocket")
except torch.OutOfMemoryError as error:
    print("memory is limited:", str(error).splitlines()[0])
else:
    raise AssertionError("a device gave more memory than it has")

storage = torch.UntypedStorage(1000, device="pocket:0")
try:
    storage.resize_(1 << 40)
except torch.OutOfMemoryError:
    assert torch.pocket.current_device() == 1, "what fails gives the current device back"
else:
    raise AssertionError("a device gave more memory than it has")

try:
    torch.empty(3, device="pocket")
except NotImplementedError as error:
    print("there are no tensors yet:", str(error).split(". ")[0])
else:
    raise AssertionError("a tensor without an operator to make it")
