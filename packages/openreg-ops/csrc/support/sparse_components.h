// SPDX-License-Identifier: BSD-3-Clause
// The components of a sparse tensor: two or three strided tensors, and numbers. The functions call PyTorch's classes of
// such tensors: ATen/SparseTensorImpl.h (COO) and ATen/SparseCsrTensorImpl.h (CSR, CSC, BSR, BSC). Only the checks at
// the end of this file read the values of indices; all other functions work on device tensors and access none of their
// memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Layout.h>
#include <c10/util/DimVector.h>

#include <array>

namespace openreg::ops {

// COO: indices, an undefined tensor, values. Compressed layouts: compressed indices, plain indices, values.
using SparseComponents = std::array<at::Tensor, 3>;

// All properties of a sparse tensor, without its components.
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

// Returns the component tensors themselves, neither detached nor copied into new tensor objects, as
// at::Tensor::_indices() does.
SparseComponents sparse_components(const at::Tensor& sparse);

// Same as `sparse_components()`, except that it copies components that are not contiguous, because some kernels assume
// contiguous ones.
SparseComponents contiguous_components_of(const at::Tensor& sparse);

// Returns a new sparse tensor of these components, on their device. Throws c10::Error if the components do not match
// the shape.
at::Tensor assemble(const SparseShape& shape, const SparseComponents& components);

// Replaces the components and sizes of `sparse`, whose layout, dtype and device are those of `shape` and `components`.
void assign(const at::Tensor& sparse, const SparseShape& shape, const SparseComponents& components);

// CPU kernels do not check the indices that they follow, and would access memory out of bounds. The functions below
// throw c10::Error first. They take CPU tensors, and need the time of one pass over the indices.

// Throws c10::Error unless all indices are inside the tensor, and the compressed ones are valid for the number of
// values.
void check_sparse_invariants(const SparseShape& shape, const SparseComponents& components);

// Throws c10::Error unless all indices of dimension `dim` are in [0, end).
void check_indices(const at::Tensor& indices, int64_t end, int64_t dim);

// Throws c10::Error unless the compressed indices of dimension `dim` are in [0, nnz] and never decrease.
void check_compressed_indices(const at::Tensor& compressed, int64_t nnz, int64_t dim);

}  // namespace openreg::ops
