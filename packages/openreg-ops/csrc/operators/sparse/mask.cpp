// SPDX-License-Identifier: BSD-3-Clause
// Masks of tensors by sparse tensors, and products of a CSR tensor and a strided one, which have the elements of the
// former. The results have the indices of the mask or the CSR tensor, so no operator blocks.
#include <ATen/ops/_convert_indices_from_csr_to_coo.h>
#include <ATen/ops/index.h>
#include <ATen/ops/mul.h>

#include "operators/sparse/pattern.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

// COO

constexpr Operator kMask{op::sparse_mask::name};

void check_same_shape(const char* name, const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(self.sizes() == mask.sizes(), name, "(): operands have incompatible sizes; self has size ", self.sizes(),
              " but mask has size ", mask.sizes());
  TORCH_CHECK(
      self.sparse_dim() == mask.sparse_dim(), name,
      "(): the number of sparse dimensions in `self` should match that of the `mask`. Got `self.sparse_dim() == ",
      self.sparse_dim(), "` != `mask.sparse_dim() == ", mask.sparse_dim(), "`.");
}

bool both_have_elements(const at::Tensor& one, const at::Tensor& other) {
  return is_sparse(one) && is_sparse(other) && one._nnz() > 0 && other._nnz() > 0;
}

// Launches only if `self` is sparse. Otherwise PyTorch's function multiplies it by ones at the mask's elements, through
// other operators.
at::Tensor mask_coo(const at::Tensor& self, const at::Tensor& mask) {
  const OperandDeviceGuard device(kMask, self, mask);
  if (self.is_same(mask) || self.layout() != mask.layout() || !both_have_elements(self, mask)) {
    return call_host_composite<op::sparse_mask>(kCoo, self, mask);
  }
  check_same_shape("sparse_mask", self, mask);
  const at::Tensor result = empty_of_pattern(mask, self.scalar_type());
  launch_values<op::sparse_mask, kCoo>(device, result, self, mask);
  return result;
}

at::Tensor project(const at::Tensor& self, const at::Tensor& mask, bool accumulate) {
  const OperandDeviceGuard device({op::_sparse_mask_projection::name}, self, mask);
  if (!both_have_elements(self, mask)) {
    return call_host_composite<op::_sparse_mask_projection>(kCoo, self, mask, accumulate);
  }
  check_same_shape("_sparse_mask_projection", self, mask);
  const at::Tensor result = empty_of_pattern(self, self.scalar_type());
  launch_values<op::_sparse_mask_projection, kCoo>(device, result, self, mask, accumulate);
  return result;
}

// Compressed layouts

// Also writes the plain indices, because the CPU's function sorts those that are not sorted in the mask.
void mask_compressed_kernel(const at::Tensor& self, const at::Tensor& mask, at::Tensor& plain, at::Tensor& values) {
  const SparseComponents computed =
      sparse_components(op::sparse_mask::redispatch(c10::DispatchKeySet(kCompressed), self, mask));
  put_result(kMask.name, computed[2], values);
  plain.copy_(computed[1]);
}

at::Tensor mask_compressed(const at::Tensor& self, const at::Tensor& mask) {
  const OperandDeviceGuard device(kMask, self, mask);
  const bool gathers = !is_sparse(self) && self.sizes() == mask.sizes() && mask.numel() > 0 && mask._nnz() > 0;
  if (!gathers) {
    return call_host_composite<op::sparse_mask>(kCompressed, self, mask);
  }
  at::Tensor result = empty_of_pattern(mask, self.scalar_type(), at::kLong);
  const SparseComponents components = sparse_components(result);
  launch(kMask, device, &mask_compressed_kernel, self, mask, components[1], components[2]);
  return result;
}

// Returns true if the operands are a CSR matrix with elements and a strided tensor of its size and dtype.
bool masks(const at::Tensor& sparse, const at::Tensor& strided) {
  return sparse.layout() == c10::kSparseCsr && !is_sparse(strided) && strided.dim() > 0 &&
         sparse.sizes() == strided.sizes() && sparse.scalar_type() == strided.scalar_type() && sparse._nnz() > 0 &&
         sparse.crow_indices().dim() == 1;
}

// Multiplies each value by the element of `strided` at its place. The places are in the order of the values, which need
// not be sorted by columns.
void multiply_kernel(const at::Tensor& rows, const at::Tensor& columns, const at::Tensor& values,
                     const at::Tensor& strided, at::Tensor& products) {
  check_compressed_indices(rows, columns.size(-1), 0);
  const at::Tensor places = at::_convert_indices_from_csr_to_coo(rows, columns);
  at::mul_out(products, at::index(strided, {places.select(0, 0), places.select(0, 1)}), values);
}

// Multiplies a CSR matrix by a strided tensor, in one launch. PyTorch's function would convert the strided tensor to
// CSR and both to COO, and then intersect their indices.
at::Tensor multiply(const at::Tensor& self, const at::Tensor& other) {
  const c10::Device device = device_of(op::mul_Tensor::name, self, other);
  check_same_device_or_scalar(op::mul_Tensor::name, device, self, other);
  const CurrentDeviceGuard current(device);
  if (!masks(self, other) && !masks(other, self)) {
    return call_host_composite<op::mul_Tensor>(kCompressed, self, other);
  }
  const at::Tensor& sparse = is_sparse(self) ? self : other;
  const at::Tensor& strided = is_sparse(self) ? other : self;
  at::Tensor result = empty_of_pattern(sparse, sparse.scalar_type(), at::kLong);
  const SparseComponents components = sparse_components(sparse);
  launch({op::mul_Tensor::name}, device, &multiply_kernel, components[0], components[1], components[2], strided,
         sparse_components(result)[2]);
  return result;
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, library) {
  const RegistrationKeyGuard sparse(c10::DispatchKey::SparsePrivateUse1);
  function<op::_sparse_mask_projection>(library, project);
  function<op::sparse_mask>(library, mask_coo);
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, library) {
  const RegistrationKeyGuard sparse(c10::DispatchKey::SparseCsrPrivateUse1);
  function<op::mul_Tensor>(library, multiply);
  function<op::sparse_mask>(library, mask_compressed);
}

}  // namespace

}  // namespace openreg::ops
