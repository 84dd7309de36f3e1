// SPDX-License-Identifier: BSD-3-Clause
// Minimal set: copies between host and device, between devices, and within one; Tensor.copy_() and Tensor.to() end
// here.
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/copy_native.h>
#include <torch/library.h>

#include "launch/kernel_traits.h"
#include "launch/run_and_wait.h"
#include "minimal/selection.h"
#include "openreg/runtime/alias.h"
#include "openreg/runtime/allocator.h"
#include "openreg/runtime/capture.h"
#include "openreg/runtime/event.h"
#include "openreg/runtime/gil.h"
#include "openreg/runtime/host_wait.h"
#include "openreg/runtime/launch.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/stream.h"
#include "openreg/runtime/sync_debug.h"
#include "support/device_check.h"

namespace openreg::ops {

namespace {

constexpr const char* kName = "aten::_copy_from";
constexpr size_t kParallelCopy = size_t{4} << 20;  // bytes
constexpr size_t kSerialCopy = size_t{256} << 10;  // bytes

// Returns true if at::native::copy_() converts this dtype to others.
bool is_converted(c10::ScalarType dtype) {
  return (dtype_bit(dtype) & kCommonDtypes) != 0 || c10::isFloat8Type(dtype) || is_reduced_complex(dtype) ||
         dtype == at::kUInt16 || dtype == at::kUInt32 || dtype == at::kUInt64;
}

bool is_on_device(const at::Tensor& tensor) {
  return tensor.device().type() == runtime::kDeviceType;
}

// Returns true if the copy conjugates numbers that PyTorch's kernel may be unable to conjugate: those of two bfloat16
// parts.
bool conjugates_unknown(const at::Tensor& source, const at::Tensor& destination) {
  const c10::ScalarType dtype = source.scalar_type();
  return source.is_conj() != destination.is_conj() && is_reduced_complex(dtype) && dtype != at::kComplexHalf;
}

// Returns true if the copy moves bytes only, so that it needs no kernel.
bool is_plain(const at::Tensor& source, const at::Tensor& destination) {
  return source.dtype() == destination.dtype() && source.is_conj() == destination.is_conj() &&
         source.is_neg() == destination.is_neg() && source.sizes() == destination.sizes() &&
         source.strides() == destination.strides() && source.is_non_overlapping_and_dense();
}

// Returns true if both are the same elements in the same order, so that there is nothing to copy.
bool is_itself(const at::Tensor& source, const at::Tensor& destination) {
  return source.is_same(destination) ||
         (source.is_alias_of(destination) && source.storage_offset() == destination.storage_offset() &&
          source.dtype() == destination.dtype() && source.is_conj() == destination.is_conj() &&
          source.is_neg() == destination.is_neg() && source.sizes() == destination.sizes() &&
          source.strides() == destination.strides());
}

// Enqueues the copy as one kernel, for any strides and lazy bits. PyTorch's kernel cannot convert some dtypes of less
// than a byte, nor dtypes of bits without a meaning. Their copies are synchronous and throw the kernel's exception.
// `waits_anyway` is true if the caller has already checked that it may synchronize.
void launch_copy(const at::Tensor& source, const at::Tensor& destination, c10::Stream stream,
                 bool waits_anyway = false) {
  runtime::AliasBuilder aliases(kName);
  at::Tensor from = is_on_device(source) ? aliases(source) : aliases.borrow_host(source);
  aliases.as(orAccessWrite);
  at::Tensor to = is_on_device(destination) ? aliases(destination) : aliases.borrow_host(destination);
  const bool converted = is_converted(source.scalar_type()) && is_converted(destination.scalar_type());
  if (!converted || conjugates_unknown(source, destination)) {
    if (!waits_anyway) {
      check_sync_allowed(kName, stream);
    }
    run_and_wait(kName, stream, [&] { at::native::copy_(to, from, false); }, aliases.operands());
    return;
  }
  auto copy = [from = std::move(from), to = std::move(to)]() mutable { at::native::copy_(to, from, false); };
  runtime::launch(kName, stream, std::move(copy), aliases.operands());
}

void copy_bytes(const at::Tensor& source, const at::Tensor& destination, c10::Stream stream) {
  const orStream_t handle = runtime::native_handle(stream);
  orError_t status = orSuccess;
  {
    // The call blocks while the queue is full, and until a copy of pageable memory is complete. PyTorch holds the GIL
    // when it copies storages.
    const runtime::GilRelease release;
    status = orMemcpyAsync(destination.mutable_data_ptr(), source.const_data_ptr(), source.nbytes(), orMemcpyDefault,
                           handle);
  }
  OPENREG_CHECK(status);
}

// Copies a small tensor as bytes if possible, because this takes less time than to start a second thread of a kernel.
void copy_on_device(const at::Tensor& source, const at::Tensor& destination, c10::Stream stream) {
  if (source.nbytes() <= kSerialCopy && is_plain(source, destination)) {
    copy_bytes(source, destination, stream);
  } else {
    launch_copy(source, destination, stream);
  }
}

constexpr const char* kWaitingCopy = "a copy between openreg and the host that waits (.cpu(), .to(), printing)";

// Enqueues a copy between host and device, after which the host waits for the stream if `waits` is true. Then a large
// copy runs on all threads of the compute engine. Otherwise it would delay kernels of other streams. `plain` is what
// is_plain() returns for the two.
void enqueue_copy_with_host(const at::Tensor& source, const at::Tensor& destination, c10::Stream stream, bool plain,
                            bool waits) {
  runtime::release_openmp_threads();  // the data may come from a parallel operator of this thread
  const bool parallel = waits && source.nbytes() >= kParallelCopy;
  if (plain && !parallel) {
    copy_bytes(source, destination, stream);
  } else {
    launch_copy(source, destination, stream, waits);
  }
}

void copy_with_host(const at::Tensor& source, const at::Tensor& destination, bool non_blocking) {
  const at::Tensor& host = is_on_device(source) ? destination : source;
  const at::Tensor& device = is_on_device(source) ? source : destination;
  const c10::Stream stream = runtime::current_stream(device.get_device());
  const bool pinned = runtime::is_pinned(host.storage().data());
  // The driver stages the bytes of a small pageable source, so the call need not block until they are copied.
  const bool plain = is_plain(source, destination);
  const bool stageable = plain && !is_on_device(source) && !pinned;
  const bool waits = !stageable && !(non_blocking && pinned);
  if (waits) {
    runtime::check_stream_not_capturing(kWaitingCopy, stream);
  }
  // REAL HW: CUDA's copies wait for the stream unless the caller allows otherwise, so the mode reports a staged one,
  // too.
  if (waits || !non_blocking) {
    runtime::warn_or_error_on_sync(kName, stream.device());
  }
  enqueue_copy_with_host(source, destination, stream, plain, waits);
  if (pinned) {
    runtime::host_allocator().record_event(host.storage().mutable_data(), host.storage().data_ptr().get_context(),
                                           stream);
  }
  if (waits) {
    runtime::synchronize_stream(stream);
  }
}

// Copies on the source's device, after the earlier tasks of the destination's stream, which then waits for the copy.
void copy_between_devices(const at::Tensor& source, const at::Tensor& destination) {
  const c10::Stream from = runtime::current_stream(source.get_device());
  const c10::Stream to = runtime::current_stream(destination.get_device());
  runtime::Event ready;
  ready.record(to);
  ready.block(from);
  launch_copy(source, destination, from);
  runtime::Event done;
  done.record(from);
  done.block(to);
  runtime::device_allocator().recordStream(destination.storage().data_ptr(), from);
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  TORCH_CHECK(self.defined() && dst.defined(), kName, ": both tensors must be defined");
  const at::Tensor source = self.sizes() == dst.sizes() ? self : self.expand(dst.sizes());
  if (source.numel() == 0 || is_itself(source, dst)) {
    return dst;
  }
  if (C10_UNLIKELY(source.is_complex() && !dst.is_complex() && dst.scalar_type() != at::kBool)) {
    // Warns as at::native::copy_() does for the CPU, because a warning of an engine is lost.
    TORCH_WARN_ONCE("Casting complex values to real discards the imaginary part");
  }
  runtime::check_storage(kName, source);
  runtime::check_storage(kName, dst);
  at::assert_no_internal_overlap(dst);
  at::assert_no_partial_overlap(dst, source);
  if (!is_on_device(source) || !is_on_device(dst)) {
    const at::Tensor& host = is_on_device(source) ? dst : source;
    TORCH_CHECK(host.device().is_cpu(), kName, ": cannot copy between ", source.device(), " and ", dst.device(),
                "; copy to the CPU first");
    copy_with_host(source, dst, non_blocking);
  } else if (source.device() == dst.device()) {
    copy_on_device(source, dst, runtime::current_stream(dst.get_device()));
  } else {
    copy_between_devices(source, dst);
  }
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  dst.resize_(self.sizes());
  return copy_from(self, dst, false);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  minimal::implement(library, "_copy_from", TORCH_FN(copy_from));
  minimal::implement(library, "_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
}

// Makes the conjugate and negative keys pass, because the kernels take these bits as they are. Otherwise PyTorch would
// first resolve the bits by a copy, which ends here again.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, Negative, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace

}  // namespace openreg::ops
