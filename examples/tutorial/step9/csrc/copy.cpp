// SPDX-License-Identifier: BSD-3-Clause
// The minimal operators, second part: data from and to the device.
#include <ATen/MemoryOverlap.h>
#include <torch/library.h>

#include <memory>

#include "launch.h"
#include "queue.h"

namespace pocket {

namespace {

bool on_device(const at::Tensor& tensor) {
  return tensor.device().type() == kType;
}

// Makes later tasks of one stream wait for the tasks that another stream has now.
void wait_for(const c10::Stream& waiting, const c10::Stream& other) {
  Queue& queue = queue_of(other);
  queue_of(waiting).push([&queue, ticket = queue.last()] { queue.wait(ticket); });
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  for (const auto& tensor : {self, dst}) {
    TORCH_CHECK(on_device(tensor) || tensor.is_cpu(), "copy between ", self.device(), " and ", dst.device(),
                ": go by way of the CPU");
  }
  // Here, because the kernel's views hide that both tensors are of one storage.
  at::assert_no_internal_overlap(dst);
  at::assert_no_partial_overlap(dst, self);
  const at::Tensor source = self.expand(dst.sizes());
  const c10::Device device = on_device(dst) ? dst.device() : self.device();
  const c10::Stream stream = current_stream(device.index());
  const bool between_devices = on_device(self) && on_device(dst) && self.device() != dst.device();
  if (between_devices) {
    wait_for(stream, current_stream(self.get_device()));
  }
  launch(device, [from = host_view(source), to = host_view(dst)] { to.copy_(from); });
  if (between_devices) {
    wait_for(current_stream(self.get_device()), stream);
  }
  // The caller may change or free host memory as soon as this returns. release_later() frees pinned memory.
  const at::Tensor& host = on_device(self) ? dst : self;
  if (!on_device(host) && !(non_blocking && is_pinned(host.storage().data()))) {
    queue_of(stream).synchronize();
  }
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  dst.resize_(self.sizes());
  return copy_from(self, dst, false);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  const auto result = std::make_shared<at::Scalar>();  // shared with the kernel
  launch(self.device(), [result, view = host_view(self)] { *result = view.item(); });
  queue_of(current_stream(self.get_device())).synchronize();
  return *result;
}

// A program calls it for a tensor that it uses on another stream. Here freed memory waits for all streams anyway.
void record_stream(at::Tensor& /*self*/, at::Stream /*stream*/) {}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_copy_from", TORCH_FN(copy_from));
  library.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  library.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
  library.impl("record_stream", TORCH_FN(record_stream));
}

// A copy resolves these bits itself. Without these lines PyTorch would resolve them first, by a copy, without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace

}  // namespace pocket
