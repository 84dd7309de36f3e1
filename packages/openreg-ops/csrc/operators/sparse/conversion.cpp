// SPDX-License-Identifier: BSD-3-Clause
// Conversions from strided to sparse tensors, the check of compressed indices, and the operators of the device that
// conversions between sparse layouts require.
#include <ATen/native/DispatchStub.h>

#include "registration/declare.h"
#include "support/sparse_components.h"

namespace openreg::ops {

namespace {

// Kernels that check the indices first, because PyTorch's kernels write to the positions that these contain.
at::Tensor& compress(const at::Tensor& rows, int64_t size, bool out_int32, at::Tensor& out) {
  check_indices(rows, size, 0);
  return cpu::_convert_indices_from_coo_to_csr_outf(rows, size, out_int32, out);
}

at::Tensor& expand(const at::Tensor& compressed, const at::Tensor& plain, bool out_int32, bool transpose,
                   at::Tensor& out) {
  check_compressed_indices(compressed, plain.size(-1), 0);  // each batch has so many
  return cpu::_convert_indices_from_csr_to_coo_outf(compressed, plain, out_int32, transpose, out);
}

// Returns the index of each element in a flattened tensor of this size, from the columns of `indices`. PyTorch's
// functions for all sparse layouts call it through a stub.
at::Tensor flatten_indices(const at::Tensor& indices, c10::IntArrayRef size) {
  at::Tensor places = indices.select(0, 0).to(at::kLong);
  for (int64_t dim = 1; dim < indices.size(0); ++dim) {
    places = places.mul(size[static_cast<size_t>(dim)]).add_(indices.select(0, dim));
  }
  return places;
}

constexpr const char* kStridedToSparse[] = {"_to_sparse",     "_to_sparse.sparse_dim", "_to_sparse_bsc",
                                            "_to_sparse_bsr", "_to_sparse_csc",        "_to_sparse_csr"};

// Synchronous, because the check throws on the calling line, and the offsets determine the number of elements that
// _spdiags() returns.
constexpr const char* kStridedSynchronous[] = {"_spdiags", "_validate_compressed_sparse_indices"};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  constexpr KernelTraits kIntegral{.refused = kBoolean | kFloating | kComplex};
  structured<meta::structured__convert_indices_from_coo_to_csr, op::_convert_indices_from_coo_to_csr>(library, compress,
                                                                                                      kIntegral);
  structured<meta::structured__convert_indices_from_csr_to_coo, op::_convert_indices_from_csr_to_coo>(library, expand,
                                                                                                      kIntegral);
  host_composite<kStrided>(library, kStridedToSparse);
  synchronous<kStrided>(library, kStridedSynchronous);
}

}  // namespace

}  // namespace openreg::ops

// The stub is exported, and no installed header declares it. The macro names a type of its namespace.
namespace at::native {
using flatten_indices_fn = Tensor (*)(const Tensor&, IntArrayRef);
DECLARE_DISPATCH(flatten_indices_fn, flatten_indices_stub)
REGISTER_PRIVATEUSE1_DISPATCH(flatten_indices_stub, &openreg::ops::flatten_indices)
}  // namespace at::native
