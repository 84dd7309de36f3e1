// SPDX-License-Identifier: BSD-3-Clause
// From strided tensors to sparse ones, the check of compressed indices, and what conversions between sparse layouts
// need of the device.
#include <ATen/native/DispatchStub.h>

#include "registration/declare.h"
#include "support/sparse_components.h"

namespace openreg::ops {

namespace {

// PyTorch's kernels write where the indices point to.
at::Tensor& compress(const at::Tensor& rows, int64_t size, bool out_int32, at::Tensor& out) {
  check_indices(rows, size, 0);
  return cpu::_convert_indices_from_coo_to_csr_outf(rows, size, out_int32, out);
}

at::Tensor& expand(const at::Tensor& compressed, const at::Tensor& plain, bool out_int32, bool transpose,
                   at::Tensor& out) {
  check_compressed_indices(compressed, plain.numel(), 0);
  return cpu::_convert_indices_from_csr_to_coo_outf(compressed, plain, out_int32, transpose, out);
}

// The place of each element in a tensor of this size, by the columns of `indices`. PyTorch's functions for all sparse
// layouts ask for it through a stub.
at::Tensor flatten_indices(const at::Tensor& indices, c10::IntArrayRef size) {
  at::Tensor places = indices.select(0, 0).to(at::kLong);
  for (int64_t dim = 1; dim < indices.size(0); ++dim) {
    places = places.mul(size[static_cast<size_t>(dim)]).add_(indices.select(0, dim));
  }
  return places;
}

constexpr const char* kStridedToSparse[] = {"_to_sparse",     "_to_sparse.sparse_dim", "_to_sparse_bsc",
                                            "_to_sparse_bsr", "_to_sparse_csc",        "_to_sparse_csr"};

// The check tells the caller what it finds; of the diagonals, as many elements are in the matrix as the offsets say.
constexpr const char* kStridedWaiting[] = {"_spdiags", "_validate_compressed_sparse_indices"};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  constexpr KernelTraits kWhole{.refused = kBoolean | kFloating | kComplex};
  structured<meta::structured__convert_indices_from_coo_to_csr, op::_convert_indices_from_coo_to_csr>(library, compress,
                                                                                                      kWhole);
  structured<meta::structured__convert_indices_from_csr_to_coo, op::_convert_indices_from_csr_to_coo>(library, expand,
                                                                                                      kWhole);
  host_composite<kStrided>(library, kStridedToSparse);
  synchronous<kStrided>(library, kStridedWaiting);
}

}  // namespace

}  // namespace openreg::ops

// The stub is exported, and no installed header declares it. The macro names a type of its namespace.
namespace at::native {
using flatten_indices_fn = Tensor (*)(const Tensor&, IntArrayRef);
DECLARE_DISPATCH(flatten_indices_fn, flatten_indices_stub)
REGISTER_PRIVATEUSE1_DISPATCH(flatten_indices_stub, &openreg::ops::flatten_indices)
}  // namespace at::native
