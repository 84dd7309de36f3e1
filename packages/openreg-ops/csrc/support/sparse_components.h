// SPDX-License-Identifier: BSD-3-Clause
// What a sparse tensor is made of: two or three ordinary tensors, and numbers. The interfaces are PyTorch's
// ATen/SparseTensorImpl.h (COO) and ATen/SparseCsrTensorImpl.h (CSR, CSC, BSR, BSC). Nothing here reads an index but
// check_places().
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Layout.h>
#include <c10/util/DimVector.h>

#include <array>

namespace openreg::ops {

// COO: indices, nothing, values. Compressed layouts: compressed indices, plain indices, values.
using SparseMembers = std::array<at::Tensor, 3>;

// All of a sparse tensor but its members.
struct SparseShape {
  c10::Layout layout;
  caffe2::TypeMeta dtype;
  c10::DimVector sizes;
  int64_t sparse_dim;
  int64_t dense_dim;
  bool is_coalesced;  // of COO

  // Of a sparse tensor.
  explicit SparseShape(const at::Tensor& sparse);
};

// Of an undefined tensor, no.
bool is_sparse(const at::Tensor& tensor);

// The tensors themselves, as at::Tensor::_indices() and the like give them: not detached, not aliased.
SparseMembers members_of(const at::Tensor& sparse);

// The same for kernels, some of which take them for contiguous: copies of those that are not.
SparseMembers contiguous_members_of(const at::Tensor& sparse);

// A sparse tensor of these members, on their device. Throws c10::Error where shape and members do not go together.
at::Tensor assemble(const SparseShape& shape, const SparseMembers& members);

// Makes a sparse tensor of the same layout, dtype and device into that.
void assign(const at::Tensor& sparse, const SparseShape& shape, const SparseMembers& members);

// Kernels for the CPU do not look at the indices that they follow, and would read and write beyond the memory. These
// throw c10::Error first. For tensors of the CPU; the time is that of a pass over the indices.

// Unless all indices lie in the tensor, and the compressed ones among the values.
void check_places(const SparseShape& shape, const SparseMembers& members);

// Unless all of them are in [0, end): the indices of dimension `dim`.
void check_indices(const at::Tensor& indices, int64_t end, int64_t dim);

// Unless they are in [0, nnz] and never decrease: the compressed indices of dimension `dim`.
void check_compressed_indices(const at::Tensor& compressed, int64_t nnz, int64_t dim);

}  // namespace openreg::ops
