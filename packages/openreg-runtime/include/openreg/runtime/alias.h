// SPDX-License-Identifier: BSD-3-Clause
// The builder of a launch's aliases. The kernels of this device execute on the CPU, so a launch passes them an alias of
// each operand: a CPU tensor over the bytes of a device tensor, which does not own these bytes.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "openreg/runtime/alias_descriptor.h"
#include "openreg/runtime/export.h"
#include "openreg/runtime/operands.h"

namespace openreg::runtime {

// Throws c10::Error, with the operation, the tensor and its storage, if a dense tensor reaches beyond its storage. Such
// a tensor exists after its storage was resized to fewer bytes, by which FSDP frees parameters. A kernel must not
// access it. AliasBuilder checks all its tensors. A launch that passes addresses instead calls this function for the
// tensors at these addresses. Thread-safe.
OPENREG_RUNTIME_API void check_storage(const char* operation, const at::Tensor& tensor);

// A builder of the aliases of one launch. An alias has its tensor's sizes, strides, offset, dtype and lazy bits (conj,
// neg). Its address is in the kernel view, the mapping of device memory that kernels dereference. Tensors that share a
// storage get aliases that share one, so that PyTorch's overlap checks work. A launch uses one object, which is not
// thread-safe.
//
// The bytes stay valid until the kernel has run, because the allocator reuses a block only for later tasks of its
// stream.
class OPENREG_RUNTIME_API AliasBuilder {
 public:
  // Returns the alias of a dense tensor of this device, and an undefined tensor for an undefined one. Returns a copy of
  // a 0-dim CPU tensor, because the host may change or free it before the kernel runs. Throws c10::Error, with the
  // operation, for every other tensor and for one that reaches beyond its storage.
  at::Tensor operator()(const at::Tensor& tensor);

  // Returns the descriptor from which the thread that executes the kernel makes the alias later. This costs the calling
  // thread less than operator(). Accepts the tensors that operator() accepts and throws its errors.
  AliasDescriptor describe(const at::Tensor& tensor);

  // Returns an alias of a CPU tensor. A launch needs it because it must not own the tensor, which may have a Python
  // object (see launch() in launch.h). The caller keeps the bytes valid until the kernel has run. It either
  // synchronizes, or the memory is pinned and the use on the stream is recorded with its allocator. Throws c10::Error
  // if the tensor reaches beyond its storage.
  at::Tensor borrow_host(const at::Tensor& tensor);

  // Keeps a temporary tensor, one that only this launch uses, until this object is destroyed. Destroy this object after
  // the launch was enqueued: otherwise another thread could get the memory and enqueue a task that writes to it before
  // the kernel reads it.
  void keep(at::Tensor temporary) { kept_.push_back(std::move(temporary)); }

  // Sets the access that is reported to observers (tools such as profilers and sanitizers) for the tensors of later
  // calls. It is orAccessRead at first.
  AliasBuilder& as(orAccess access) {
    access_ = access;
    return *this;
  }

  // Returns the operands of all tensors so far, for the argument of launch(). Returns null if no observer required
  // operands (Operands::wanted()) when this object was made. Valid as long as this object.
  const Operands* operands() const { return operands_.has_value() ? &*operands_ : nullptr; }

  // `operation` is the operation's name in error messages. It must outlive this object.
  explicit AliasBuilder(const char* operation) : operation_(operation) {
    if (Operands::wanted()) {
      operands_.emplace();
    }
  }

 private:
  AliasDescriptor describe_at(const at::Tensor& tensor, void* address);
  uint32_t number_of(const c10::StorageImpl* storage) {
    uint32_t number = 0;
    while (number < known_.size() && known_[number] != storage) {
      ++number;
    }
    if (number == known_.size()) {
      known_.push_back(storage);
    }
    return number;
  }

  const char* operation_;
  orAccess access_ = orAccessRead;
  std::optional<Operands> operands_;                    // without a value if no observer requires them
  c10::SmallVector<const c10::StorageImpl*, 4> known_;  // storages of the launch; the index is the storage's number
  AliasStorages storages_;                              // storages of the aliases that this object has made
  std::vector<at::Tensor> kept_;                        // the tensors of keep()
};

}  // namespace openreg::runtime
