// SPDX-License-Identifier: BSD-3-Clause
#include "registration/structured.h"

namespace openreg::ops {

void MetaOutputs::provide(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                          const at::TensorOptions& options, bool is_iterator) {
  at::Tensor& output = outputs_[index];
  switch (kind_) {
    case OverloadKind::kFunctional:
      output = make_output(sizes, strides, options);
      return;
    case OverloadKind::kOut:
      if (!is_iterator) {  // an iterator rejects such sizes itself
        check_sizes_(output, sizes);
      }
      resize_out(output, sizes, strides, options);
      if (!is_iterator && !is_laid_out(output, strides, options)) {
        instead_[index] = make_output(sizes, strides, options);
      }
      return;
    case OverloadKind::kInplace:
      check_inplace(output, sizes, options);
      return;
  }
}

void RunKernel::restore(const char* name, at::Tensor& output, const OutputLayout& layout) {
  TORCH_CHECK(output.sizes() == layout.sizes, name, ": the kernel gave its output the shape ", output.sizes(),
              " where the host expected ", layout.sizes, "; please report this");
  if (output.strides() != layout.strides || output.is_conj() != layout.is_conj) {
    const at::Tensor computed = output.clone();
    output.unsafeGetTensorImpl()->set_sizes_and_strides(layout.sizes, layout.strides);
    output._set_conj(layout.is_conj);
    output.copy_(computed);
  }
}

}  // namespace openreg::ops
