// SPDX-License-Identifier: BSD-3-Clause
#include "launch.h"

#include "queue.h"

namespace pocket {

void launch(c10::Device device, std::function<void()> kernel) {
  queue_of(current_stream(device.index())).push(std::move(kernel));
}

at::Tensor host_view(const at::Tensor& tensor) {
  const c10::Storage& memory = tensor.storage();
  c10::Storage storage(c10::Storage::use_byte_size_t{}, memory.nbytes(), {memory.mutable_data(), c10::kCPU}, nullptr,
                       /*resizable=*/false);
  // Only the key CPU, because a kernel runs below autograd.
  auto view = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                       tensor.dtype());
  auto* impl = view.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  view._set_conj(tensor.is_conj());
  view._set_neg(tensor.is_neg());
  return view;
}

}  // namespace pocket
