// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/util/SmallVector.h>

#include <cstdint>

#include "openreg/runtime/alias_record.h"
#include "openreg/runtime/export.h"
#include "openreg/runtime/operands.h"

namespace openreg::runtime {

// Throws c10::Error that names the operation, the tensor and its storage where a dense tensor reaches beyond the
// storage: after a storage was resized, as FSDP frees parameters, nothing may be read or written there. Aliases checks
// all that it is given; a launch that takes addresses checks the tensors behind them itself.
OPENREG_RUNTIME_API void check_storage(const char* operation, const at::Tensor& tensor);

// Makes the CPU tensors that the kernel of one launch works on: same sizes, strides, offset, dtype and lazy bits, same
// bytes through the kernel view, no ownership. Tensors that share a storage get aliases that share one, so that
// PyTorch's overlap checks work. One object per launch; not thread-safe.
//
// The bytes stay valid until the launch has run, because the allocator reuses memory only for later work of the same
// stream.
class OPENREG_RUNTIME_API Aliases {
 public:
  // A dense tensor of this device gives its alias. An undefined one gives an undefined one. A 0-dim CPU tensor gives a
  // copy, for the host may change or free it before the kernel runs. Anything else throws c10::Error that names
  // operator and device, and so does a tensor that reaches beyond its storage.
  at::Tensor operator()(const at::Tensor& tensor);

  // What the alias of the same tensor is made from later: cheaper for the calling thread. Throws as above.
  AliasRecord record(const at::Tensor& tensor);

  // The same bytes of a CPU tensor, without ownership: a launch must not own a tensor that has a Python object. The
  // caller keeps the memory alive until the launch has run: it waits, or the memory is pinned and its allocator waits.
  at::Tensor borrow_host(const at::Tensor& tensor);

  // What the kernel does with the tensors that follow, to be told to observers; at first it reads them.
  Aliases& as(orAccess access) {
    access_ = access;
    return *this;
  }

  // All tensors so far, for launch(); null when nobody asked while this object was made. Lives as long as this object.
  const Operands* operands() const { return wanted_ ? &operands_ : nullptr; }

  // `operation` is named in errors and must outlive this object.
  explicit Aliases(const char* operation) : operation_(operation) {}

 private:
  AliasRecord describe(const at::Tensor& tensor, void* address);
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
  const bool wanted_ = Operands::wanted();
  orAccess access_ = orAccessRead;
  Operands operands_;
  c10::SmallVector<const c10::StorageImpl*, 4> known_;  // the storages of the launch, numbered
  AliasStorages storages_;                              // their aliases that exist already
};

}  // namespace openreg::runtime
