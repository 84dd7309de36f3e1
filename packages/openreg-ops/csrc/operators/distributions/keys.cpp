// SPDX-License-Identifier: BSD-3-Clause
// Random numbers that a key determines, not a generator (torch.func._random). A key is a tensor of a seed and an
// offset. There is no state to reserve from, so the CPU's kernels draw, and the numbers are the CPU's.
#include "registration/declare.h"
#include "support/torch_versions.h"

namespace openreg::ops {

namespace {

#if OPENREG_TORCH_HAS_PHILOX_KEYS

// Throws c10::Error, in PyTorch's words, unless the tensor contains keys.
void check_keys(const char* name, const at::Tensor& key) {
  TORCH_CHECK(key.dim() >= 1 && key.size(-1) == 2, name, ": key must have shape (*batch, 2), got shape ", key.sizes());
  TORCH_CHECK(key.scalar_type() == at::kUInt64, name, ": key must have dtype uint64, got ", key.scalar_type());
}

OutputSpec meta_split(const at::Tensor& key, int64_t count) {
  check_keys("_philox_key_split", key);
  TORCH_CHECK(count > 0, "_philox_key_split: num_splits must be positive, got ", count);
  c10::DimVector sizes{count};
  sizes.append(key.sizes().begin(), key.sizes().end());
  return output_of(sizes, key.scalar_type());
}

OutputSpec meta_fold_in(const at::Tensor& key, int64_t /*data*/) {
  check_keys("_philox_key_fold_in", key);
  return output_of_shape(key);
}

OutputSpec meta_fold_in_tensor(const at::Tensor& key, const at::Tensor& data) {
  TORCH_CHECK(data.scalar_type() == at::kUInt64, "_philox_key_fold_in: data must have dtype uint64, got ",
              data.scalar_type());
  TORCH_CHECK(data.numel() == 1, "_philox_key_fold_in: data must be a single value, got ", data.numel(), " elements");
  check_keys("_philox_key_fold_in", key);
  return output_of_shape(key);
}

// The kernels of the draws check their operands themselves, in the dry run before the first launch of a signature.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  unstructured<meta_split, op::_philox_key_split>(library, cpu::_philox_key_split);
  unstructured<meta_fold_in, op::_philox_key_fold_in>(library, cpu::_philox_key_fold_in);
  unstructured<meta_fold_in_tensor, op::_philox_key_fold_in_Tensor>(library, cpu::_philox_key_fold_in);
  unstructured<unchecked, op::_philox_normal_>(library, cpu::_philox_normal_);
  unstructured<unchecked, op::_philox_uniform_>(library, cpu::_philox_uniform_);
#if OPENREG_TORCH_HAS_PHILOX_RANDINT
  unstructured<unchecked, op::_philox_randint_>(library, cpu::_philox_randint_);
#endif
}

#endif

}  // namespace

}  // namespace openreg::ops
