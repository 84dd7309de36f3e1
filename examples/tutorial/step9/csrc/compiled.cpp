// SPDX-License-Identifier: BSD-3-Clause
#include "compiled.h"

#include <array>
#include <cstring>

#include "launch.h"

namespace pocket {

namespace {

using Slot = std::array<char, 16>;

struct Writer {
  Slot& slot;

  void operator()(const at::Tensor& tensor) const {
    if (tensor.device().type() == kType) {
      (*this)(tensor.mutable_data_ptr());
      return;
    }
    TORCH_CHECK(tensor.is_cpu() && tensor.numel() == 1 && tensor.itemsize() <= slot.size(),
                "a compiled kernel of pocket takes tensors of pocket, and numbers on the host; it got a tensor of ",
                tensor.sizes(), " on ", tensor.device());
    std::memcpy(slot.data(), tensor.const_data_ptr(), tensor.itemsize());
  }

  template <class T>
  void operator()(T value) const {
    std::memcpy(slot.data(), &value, sizeof(value));
  }
};

}  // namespace

void launch_compiled(uintptr_t address, int device, const std::vector<Argument>& arguments) {
  check_device(static_cast<c10::DeviceIndex>(device));
  std::vector<Slot> block(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::visit(Writer{block[i]}, arguments[i]);
  }
  auto* kernel = reinterpret_cast<void (*)(const Slot*)>(address);
  launch({kType, static_cast<c10::DeviceIndex>(device)}, [kernel, block] { kernel(block.data()); });
}

}  // namespace pocket
