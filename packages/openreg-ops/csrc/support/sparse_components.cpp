// SPDX-License-Identifier: BSD-3-Clause
#include "support/sparse_components.h"

#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/diff.h>
#include <c10/core/TensorOptions.h>

namespace openreg::ops {

namespace {

bool is_coo(c10::Layout layout) {
  return layout == c10::kSparse;
}

at::SparseTensorImpl& coo_of(const at::Tensor& sparse) {
  return *static_cast<at::SparseTensorImpl*>(sparse.unsafeGetTensorImpl());
}

at::SparseCsrTensorImpl& compressed_of(const at::Tensor& sparse) {
  return *static_cast<at::SparseCsrTensorImpl*>(sparse.unsafeGetTensorImpl());
}

bool has_blocks(c10::Layout layout) {
  return layout == c10::kSparseBsr || layout == c10::kSparseBsc;
}

// The end of all errors of these checks.
constexpr const char* kCheck = "; check sparse tensors where they are made, with check_invariants=True";

void check_compressed_places(const SparseShape& shape, const SparseComponents& components) {
  const auto& [compressed, plain, values] = components;
  const auto dense_dim = static_cast<size_t>(shape.dense_dim);
  const size_t plain_dim = at::sparse_csr::plainDimension(shape.layout, shape.sizes, dense_dim);
  const size_t compressed_dim = at::sparse_csr::compressedDimension(shape.layout, shape.sizes, dense_dim);
  check_compressed_indices(compressed, plain.size(-1), static_cast<int64_t>(compressed_dim));
  if (plain.numel() > 0) {
    const int64_t in_block = has_blocks(shape.layout) ? values.size(plain_dim + 1) : 1;
    check_indices(plain, shape.sizes[static_cast<size_t>(plain_dim)] / in_block, plain_dim);
  }
}

}  // namespace

bool is_sparse(const at::Tensor& tensor) {
  return tensor.defined() && (is_coo(tensor.layout()) || at::sparse_csr::is_sparse_compressed(tensor));
}

SparseShape::SparseShape(const at::Tensor& sparse)
    : layout(sparse.layout()), dtype(sparse.dtype()), sizes(sparse.sizes()), is_coalesced(false) {
  if (is_coo(layout)) {
    const at::SparseTensorImpl& impl = coo_of(sparse);
    sparse_dim = impl.sparse_dim();
    dense_dim = impl.dense_dim();
    is_coalesced = impl.coalesced();
  } else {
    sparse_dim = compressed_of(sparse).sparse_dim();
    dense_dim = compressed_of(sparse).dense_dim();
  }
}

SparseComponents sparse_components(const at::Tensor& sparse) {
  if (is_coo(sparse.layout())) {
    const at::SparseTensorImpl& impl = coo_of(sparse);
    return {impl.indices(), at::Tensor(), impl.values()};
  }
  const at::SparseCsrTensorImpl& impl = compressed_of(sparse);
  return {impl.compressed_indices(), impl.plain_indices(), impl.values()};
}

SparseComponents contiguous_components_of(const at::Tensor& sparse) {
  SparseComponents components = sparse_components(sparse);
  for (at::Tensor& component : components) {
    component = component.defined() ? component.contiguous() : component;
  }
  return components;
}

at::Tensor assemble(const SparseShape& shape, const SparseComponents& components) {
  const c10::Device device = components[2].device();
  const c10::DispatchKey key = c10::computeDispatchKey(c10::typeMetaToScalarType(shape.dtype), shape.layout, device);
  at::Tensor sparse = is_coo(shape.layout)
                          ? at::detail::make_tensor<at::SparseTensorImpl>(c10::DispatchKeySet(key), shape.dtype)
                          : at::detail::make_tensor<at::SparseCsrTensorImpl>(c10::DispatchKeySet(key), device,
                                                                             shape.layout, shape.dtype);
  assign(sparse, shape, components);
  return sparse;
}

void assign(const at::Tensor& sparse, const SparseShape& shape, const SparseComponents& components) {
  if (is_coo(shape.layout)) {
    at::SparseTensorImpl& impl = coo_of(sparse);
    impl.raw_resize_(shape.sparse_dim, shape.dense_dim, shape.sizes);
    impl.set_indices_and_values_unsafe(components[0], components[2]);
    impl.set_coalesced(shape.is_coalesced);
  } else {
    compressed_of(sparse).set_member_tensors(components[0], components[1], components[2], shape.sizes);
  }
}

void check_sparse_invariants(const SparseShape& shape, const SparseComponents& components) {
  if (!is_coo(shape.layout)) {
    check_compressed_places(shape, components);
    return;
  }
  for (int64_t dim = 0; dim < shape.sparse_dim; ++dim) {
    check_indices(components[0].select(0, dim), shape.sizes[static_cast<size_t>(dim)], dim);
  }
}

void check_indices(const at::Tensor& indices, int64_t end, int64_t dim) {
  if (indices.numel() == 0) {
    return;
  }
  const auto [low, high] = at::aminmax(indices);
  const int64_t least = low.item().toLong();
  const int64_t most = high.item().toLong();
  TORCH_CHECK(least >= 0 && most < end, "expected indices of at least 0 and below ", end, ", the size of dimension ",
              dim, ", but got indices from ", least, " to ", most, kCheck);
}

void check_compressed_indices(const at::Tensor& compressed, int64_t nnz, int64_t dim) {
  if (compressed.numel() == 0) {
    return;
  }
  const auto [low, high] = at::aminmax(compressed);
  const int64_t least = low.item().toLong();
  const int64_t most = high.item().toLong();
  TORCH_CHECK(least >= 0 && most <= nnz, "expected compressed indices from 0 to ", nnz,
              ", the number of elements, in dimension ", dim, ", but got indices from ", least, " to ", most, kCheck);
  TORCH_CHECK(compressed.size(-1) < 2 || at::diff(compressed).min().item().toLong() >= 0,
              "expected compressed indices that do not decrease in dimension ", dim, kCheck);
}

}  // namespace openreg::ops
