// SPDX-License-Identifier: BSD-3-Clause
// Descriptors of aliases: the values from which the aliases of a launch (CPU tensors over the bytes of device tensors,
// see alias.h) are made when an engine thread executes the kernel. Also the storages of those aliases.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/util/SmallVector.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// The storages of the aliases of one execution of a kernel. AliasBuilder (alias.h) numbers the storages of a launch
// from 0, and aliases share a storage if their tensors do. All storages of an object contain either the bytes of the
// tensors or stand-ins. A stand-in is host memory filled with zeros, with which any thread can try a kernel without
// access to the device's memory. Not thread-safe.
class OPENREG_RUNTIME_API AliasStorages {
 public:
  enum class Bytes : uint8_t { kOfTensor, kStandIn };

  explicit AliasStorages(Bytes bytes = Bytes::kOfTensor) : bytes_(bytes) {}

  // Returns a CPU tensor of any geometry over the storage with this number. The first call makes the storage, of
  // `nbytes` bytes at `address`. A stand-in has its own memory and ignores `address`. Throws std::bad_alloc if the host
  // has no memory for a stand-in.
  at::Tensor make_tensor(uint32_t number, void* address, size_t nbytes, caffe2::TypeMeta dtype);

 private:
  c10::DataPtr bytes_of(void* address, size_t nbytes) const;

  Bytes bytes_;
  c10::SmallVector<c10::Storage, 4> storages_;
};

// A descriptor of an alias. The launch owns it, and the engine thread makes the alias from it when the kernel runs. The
// launching thread thus stores only a few numbers, and the engine thread both allocates and frees the aliases, or uses
// those of earlier launches again. One thread at a time uses a descriptor. It does not own the tensor's memory.
class OPENREG_RUNTIME_API AliasDescriptor {
 public:
  // Makes the descriptor of an undefined tensor.
  AliasDescriptor() = default;
  AliasDescriptor(AliasDescriptor&&) = default;
  AliasDescriptor& operator=(AliasDescriptor&&) = default;
  ~AliasDescriptor() {
    if (alias_.defined()) {
      recycle();
    }
  }

  // Returns the alias, which the first call makes. That call adds the alias's storage to `storages` if the storage's
  // number is new there, so the aliases of all descriptors of a launch must be made with one `storages`. A replay of
  // a graph gets the alias of the previous replay, with all changes that the kernel made to it. Valid as long as this
  // object.
  at::Tensor& make_tensor(AliasStorages& storages);

 private:
  friend class AliasBuilder;
  enum class Kind : uint8_t { kUndefined, kAlias, kNumber };

  static constexpr size_t kInlineDims = 5;

  // Gives the alias to the pool of the calling thread, if it has one, or destroys it.
  void recycle() noexcept;

  // Copies the dtype, the lazy bits (conj, neg) and the flag of a wrapped number, which weakens type promotion.
  void set_bits(const c10::TensorImpl& tensor) {
    dtype_ = tensor.dtype();
    is_conj_ = tensor.is_conj();
    is_neg_ = tensor.is_neg();
    is_wrapped_number_ = tensor.is_wrapped_number();
  }

  // Returns the sizes, followed by the strides.
  int64_t* geometry() { return many_ == nullptr ? few_.data() : many_.get(); }

  Kind kind_ = Kind::kUndefined;
  bool is_conj_ = false;
  bool is_neg_ = false;
  bool is_wrapped_number_ = false;
  uint32_t storage_ = 0;  // number of the storage
  caffe2::TypeMeta dtype_;
  size_t dims_ = 0;
  // The plain members below are not initialized, because they are large and a launch has several descriptors.
  // AliasBuilder sets those that the kind uses.
  void* address_;  // address of the storage that the kernel dereferences
  size_t nbytes_;  // size of the storage in bytes
  int64_t storage_offset_;
  std::array<int64_t, 2 * kInlineDims> few_;  // geometry up to kInlineDims, or the bytes of a 0-dim CPU tensor
  std::unique_ptr<int64_t[]> many_;           // geometry of more dimensions
  at::Tensor alias_;                          // undefined before make_tensor()
};

}  // namespace openreg::runtime
