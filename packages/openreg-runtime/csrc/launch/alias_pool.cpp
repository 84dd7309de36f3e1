// SPDX-License-Identifier: BSD-3-Clause
#include "launch/alias_pool.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <utility>

namespace openreg::runtime {

namespace {

AliasPool*& pool_of_thread() {
  thread_local AliasPool* pool = nullptr;
  return pool;
}

}  // namespace

AliasPool* AliasPool::of_thread() {
  return pool_of_thread();
}

AliasPool::AliasPool() : keys_(at::detail::empty_cpu({}, c10::kFloat).key_set()) {
  pool_of_thread() = this;
}

AliasPool::~AliasPool() {
  pool_of_thread() = nullptr;
}

void AliasPool::give(at::Tensor&& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  // The key set also has the bits of lazy conjugation and negation, and of names. Aliases have storages that cannot be
  // resized, so that a resizable one is a kernel's own.
  const bool is_as_new = tensor.use_count() == 1 && tensor.weak_use_count() == 1 && impl.key_set() == keys_ &&
                         !impl.is_wrapped_number() && impl.has_storage() && tensor.storage().use_count() == 1 &&
                         !tensor.storage().resizable();
  if (is_as_new && size_ < kMost) {
    tensors_[size_++] = std::move(tensor);
  } else {
    tensor.reset();
  }
}

}  // namespace openreg::runtime
