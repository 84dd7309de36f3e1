// SPDX-License-Identifier: BSD-3-Clause
// The components of a sparse tensor: two or three strided tensors, and numbers. The interfaces are those of PyTorch's
// ATen/SparseTensorImpl.h (COO) and ATen/SparseCsrTensorImpl.h (CSR, CSC, BSR, BSC). Only the checks at the end of this
// file read indices.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Layout.h>
#include <c10/util/DimVector.h>

#include <array>

namespace openreg::ops {

// COO: indices, an undefined tensor, values. Compressed layouts: compressed indices, plain indices, values.
using SparseMembers = std::array<at::Tensor, 3>;

// All properties of a sparse tensor, without its members.
struct SparseShape {
  c10::Layout layout;
  caffe2::TypeMeta dtype;
  c10::DimVector sizes;
  int64_t sparse_dim;
  int64_t dense_dim;
  bool is_coalesced;  // only for COO

  // Copies the properties of a sparse tensor.
  explicit SparseShape(const at::Tensor& sparse);
};

// Returns true if the tensor is defined and its layout is COO or compressed.
bool is_sparse(const at::Tensor& tensor);

// Returns the members themselves, as at::Tensor::_indices() does: not detached, not aliased.
SparseMembers sparse_components(const at::Tensor& sparse);

// Same as `sparse_components()`, except that it copies members that are not contiguous, because some kernels assume
// contiguous ones.
SparseMembers contiguous_members_of(const at::Tensor& sparse);

// Returns a new sparse tensor of these members, on their device. Throws c10::Error if the members do not match the
// shape.
at::Tensor assemble(const SparseShape& shape, const SparseMembers& members);

// Replaces the members and sizes of `sparse`, whose layout, dtype and device are those of `shape` and `members`.
void assign(const at::Tensor& sparse, const SparseShape& shape, const SparseMembers& members);

// CPU kernels do not check the indices that they follow, and would access memory out of bounds. The functions below
// throw c10::Error first. They take CPU tensors, and need the time of one pass over the indices.

// Throws c10::Error unless all indices are inside the tensor, and the compressed ones are valid for the number of
// values.
void check_sparse_invariants(const SparseShape& shape, const SparseMembers& members);

// Throws c10::Error unless all indices of dimension `dim` are in [0, end).
void check_indices(const at::Tensor& indices, int64_t end, int64_t dim);

// Throws c10::Error unless the compressed indices of dimension `dim` are in [0, nnz] and never decrease.
void check_compressed_indices(const at::Tensor& compressed, int64_t nnz, int64_t dim);

}  // namespace openreg::ops
