// SPDX-License-Identifier: BSD-3-Clause
#include "operators/sparse/pattern.h"

#include "support/output_spec.h"

namespace openreg::ops {

at::Tensor empty_of_pattern(const at::Tensor& sparse, c10::ScalarType dtype,
                            std::optional<c10::ScalarType> index_dtype) {
  SparseShape shape(sparse);
  shape.dtype = c10::scalarTypeToTypeMeta(dtype);
  SparseComponents components = sparse_components(sparse);
  for (at::Tensor* const indices : {&components[0], &components[1]}) {
    if (indices->defined()) {
      *indices = indices->to(index_dtype.value_or(indices->scalar_type()), /*non_blocking=*/false, /*copy=*/true);
    }
  }
  components[2] = make_output(components[2].sizes(), {}, at::TensorOptions(sparse.device()).dtype(dtype));
  return assemble(shape, components);
}

}  // namespace openreg::ops
