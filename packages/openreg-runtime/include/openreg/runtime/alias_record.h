// SPDX-License-Identifier: BSD-3-Clause
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

// The storages of the aliases of one run of a launch, by their numbers. An alias shows either the bytes of its tensor,
// or stand-ins: zeros in host memory of its own, in which a kernel can be tried without reading or writing the device.
// Aliases whose tensors share a storage share one here in both cases. Not thread-safe.
class OPENREG_RUNTIME_API AliasStorages {
 public:
  enum class Bytes : uint8_t { kOfTensor, kStandIn };

  explicit AliasStorages(Bytes bytes = Bytes::kOfTensor) : bytes_(bytes) {}

  // The storage of this number, made when it is asked for first. Of a stand-in the address is not read. Throws
  // std::bad_alloc where the host has no memory for a stand-in.
  const c10::Storage& get(uint32_t number, void* address, size_t nbytes);

 private:
  Bytes bytes_;
  c10::SmallVector<c10::Storage, 4> storages_;
};

// What an alias is made from (see Aliases, in alias.h). A launch holds records, and the engine makes the aliases when
// the kernel runs: the host only writes down a few numbers, and what is allocated and freed with each launch stays in
// the caches of one thread. A record is made by one thread and used by one; it owns no memory of the tensor.
class OPENREG_RUNTIME_API AliasRecord {
 public:
  // Of an undefined tensor.
  AliasRecord() = default;

  // The alias. The first call makes it, and for each storage number that is new an entry of `storages`: give the same
  // `storages` to all records of a launch. Further runs of the launch get the same alias, as the last one left it.
  at::Tensor& open(AliasStorages& storages);

 private:
  friend class Aliases;
  enum class Kind : uint8_t { kUndefined, kAlias, kNumber };

  static constexpr size_t kInlineDims = 5;

  // The dtype, and what is left to be done when the values are read.
  void set_bits(const c10::TensorImpl& tensor) {
    dtype_ = tensor.dtype();
    is_conj_ = tensor.is_conj();
    is_neg_ = tensor.is_neg();
    is_wrapped_number_ = tensor.is_wrapped_number();
  }

  // Sizes, then strides.
  int64_t* geometry() { return many_ == nullptr ? few_.data() : many_.get(); }

  Kind kind_ = Kind::kUndefined;
  bool is_conj_ = false;
  bool is_neg_ = false;
  bool is_wrapped_number_ = false;
  uint32_t storage_ = 0;  // its number
  caffe2::TypeMeta dtype_;
  size_t dims_ = 0;
  // Of an alias, the rest is written when it is recorded. It is large, and each launch has several.
  void* address_;  // of the storage, for the thread that runs the kernel
  size_t nbytes_;  // of the storage
  int64_t storage_offset_;
  std::array<int64_t, 2 * kInlineDims> few_;  // the geometry, or the bytes of a 0-dim CPU tensor
  std::unique_ptr<int64_t[]> many_;           // the geometry of more dimensions
  at::Tensor alias_;                          // once opened
};

}  // namespace openreg::runtime
