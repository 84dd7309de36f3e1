// SPDX-License-Identifier: BSD-3-Clause
#include "support/output_spec.h"

#include <ATen/native/ReduceOpsUtils.h>

#include <algorithm>

#include "support/outputs.h"

namespace openreg::ops {

OutputSpec output_of(c10::IntArrayRef sizes, c10::ScalarType dtype) {
  OutputSpec spec;
  spec.sizes = c10::DimVector(sizes);
  spec.dtype = dtype;
  return spec;
}

OutputSpec output_of_shape(const at::Tensor& tensor) {
  return output_of(tensor.sizes(), tensor.scalar_type());
}

OutputSpec output_like(const at::Tensor& tensor, std::optional<c10::ScalarType> dtype) {
  OutputSpec spec = output_of(tensor.sizes(), dtype.value_or(tensor.scalar_type()));
  spec.strides = dense_strides_like(tensor);
  return spec;
}

OutputSpec with_last_sizes(const at::Tensor& tensor, c10::IntArrayRef last) {
  OutputSpec spec = output_of_shape(tensor);
  std::copy(last.begin(), last.end(), spec.sizes.end() - static_cast<std::ptrdiff_t>(last.size()));
  spec.format = tensor.suggest_memory_format();
  return spec;
}

OutputSpec scalar_output(c10::ScalarType dtype) {
  return output_of({}, dtype);
}

OutputSpec reduced_output(const at::Tensor& tensor, at::OptionalIntArrayRef dims, bool keepdim, c10::ScalarType dtype) {
  const auto mask = at::native::make_dim_mask(dims, tensor.dim());
  return output_of(at::native::shape_from_dim_mask(tensor, mask, keepdim), dtype);
}

void require_dtype(bool supported, const char* kernel, c10::ScalarType dtype) {
  TORCH_CHECK_NOT_IMPLEMENTED(supported, '"', kernel, "\" not implemented for '", c10::toString(dtype), "'");
}

at::Tensor allocate_output(const OutputSpec& spec, c10::Device device) {
  if (spec.dtype == c10::ScalarType::Undefined) {
    return {};
  }
  return make_output(spec.sizes, spec.strides, at::TensorOptions(device).dtype(spec.dtype).memory_format(spec.format));
}

void prepare_out_argument(const at::Tensor& out, const OutputSpec& spec, c10::Device device) {
  TORCH_CHECK(!spec.casts || c10::canCast(spec.dtype, out.scalar_type()), "result type ", spec.dtype,
              " can't be cast to the desired output type ", out.scalar_type());
  const c10::ScalarType dtype = spec.casts ? out.scalar_type() : spec.dtype;
  if (spec.quiet && out.scalar_type() == dtype && out.device() == device && out.sizes() != spec.sizes) {
    out.resize_(spec.sizes);
  }
  resize_out(out, spec.sizes, spec.strides, at::TensorOptions(device).dtype(dtype).memory_format(spec.format));
}

at::Tensor make_instead(const at::Tensor& out, const OutputSpec& spec, bool shares, c10::Device device) {
  const at::TensorOptions options = at::TensorOptions(device).dtype(out.dtype()).memory_format(spec.format);
  if ((spec.elsewhere && shares) || (!spec.elementwise && !is_laid_out(out, spec.strides, options))) {
    return make_output(spec.sizes, spec.strides, options);
  }
  return {};
}

void check_result(const char* name, const at::Tensor& result, const at::Tensor& output) {
  if (!output.defined()) {
    return;
  }
  TORCH_CHECK(result.defined() && result.sizes() == output.sizes() && result.scalar_type() == output.scalar_type(),
              name, ": the kernel gave ", result.toString(), result.defined() ? result.sizes() : c10::IntArrayRef(),
              " where the host expected ", output.toString(), output.sizes(), "; please report this");
}

void put_result(const char* name, const at::Tensor& result, const at::Tensor& output) {
  check_result(name, result, output);
  if (!output.defined()) {
    return;
  }
  if (!result.is_alias_of(output)) {
    output.copy_(result);
  } else if (result.strides() != output.strides() || result.is_conj() != output.is_conj()) {
    output.copy_(result.clone());
  }
}

}  // namespace openreg::ops
