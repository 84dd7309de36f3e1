// SPDX-License-Identifier: BSD-3-Clause
// Histograms of one and of several dimensions.
#include <ATen/ops/isfinite.h>

#include <cmath>

#include "registration/declare.h"

namespace openreg::ops {

namespace {

using MaybeRange = std::optional<c10::ArrayRef<double>>;
using SpecPair = std::array<OutputSpec, 2>;

void check_bin_counts(c10::IntArrayRef bins, const char* name) {
  for (size_t i = 0; i < bins.size(); ++i) {
    TORCH_CHECK(bins[i] > 0, name, "(): bins must be > 0, but got ", bins[i], " for dimension ", i);
  }
}

void check_bin_tensors(const at::Tensor& self, at::TensorList bins) {
  for (size_t i = 0; i < bins.size(); ++i) {
    TORCH_CHECK(bins[i].dim() == 1, "torch.histogramdd: bins tensor should have one dimension, but got ", bins[i].dim(),
                " dimensions in the bins tensor for dimension ", i);
    TORCH_CHECK(
        bins[i].dtype() == self.dtype(),
        "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype ",
        self.dtype(), " and bins for dimension ", i, " with dtype ", bins[i].dtype());
    TORCH_CHECK(bins[i].numel() > 0, "torch.histogramdd: bins tensor should have at least 1 element, but got ",
                bins[i].numel(), " elements in the bins tensor for dimension ", i);
  }
}

// Throws c10::Error unless the weight has the input's dtype, and `sizes` equals `points`. `points` is the shape of the
// input without its innermost dimension, the coordinates.
void check_weight(const at::Tensor& self, const at::Tensor& weight, c10::IntArrayRef sizes, c10::IntArrayRef points,
                  int64_t coordinates) {
  TORCH_CHECK(weight.dtype() == self.dtype(),
              "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
              "dtype, but got input(dtype=",
              self.dtype(), ") and weight(dtype=", weight.dtype(), ")");
  TORCH_CHECK(sizes == points,
              "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
              "excluding its innermost dimension, but got input with shape ",
              points, " by ", coordinates, " and weight with shape ", sizes);
}

// Same as `check_weight()`, except that every element is a point of one coordinate, as in torch.histogram().
void check_weight_of_elements(const at::Tensor& self, MaybeTensor weight) {
  if (is_given(weight)) {
    check_weight(self, *weight, {weight->numel()}, {self.numel()}, 1);
  }
}

// Throws c10::Error if a value is not finite, because without a range the bins span the values. Blocks to read the
// result, as CUDA does.
void check_finite(const char* name, const at::Tensor& self) {
  if (self.numel() > 0 && at::isFloatingType(self.scalar_type())) {
    TORCH_CHECK(at::isfinite(self).all().item<bool>(), name,
                ": the input holds infinities or NaN, so its range is not finite; give the range");
  }
}

void check_range(const at::Tensor& self, const MaybeRange& range, size_t coordinates) {
  if (!range.has_value()) {
    check_finite("torch.histogramdd", self);
    return;
  }
  TORCH_CHECK(range->size() == 2 * coordinates, "torch.histogramdd: for a ", coordinates,
              "-dimensional histogram range should have ", 2 * coordinates, " elements, but got ", range->size());
  for (size_t i = 0; i < coordinates; ++i) {
    const double low = (*range)[2 * i];
    const double high = (*range)[2 * i + 1];
    TORCH_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histogramdd: dimension ", i, "'s range [", low, ", ",
                high, "] is not finite");
    TORCH_CHECK(low <= high, "torch.histogramdd: min should not exceed max, but got min ", low, " max ", high,
                " for dimension ", i);
  }
}

void check_dtype(const at::Tensor& self, const char* kernel) {
  require_dtype(self.scalar_type() == at::kFloat || self.scalar_type() == at::kDouble, kernel, self.scalar_type());
}

OutputSpec meta_histc(const at::Tensor& self, int64_t bins, const at::Scalar& min, const at::Scalar& max) {
  const c10::ScalarType dtype = self.scalar_type();
  require_dtype(at::isFloatingType(dtype) || at::isIntegralType(dtype, /*includeBool=*/false), "histogram_cpu", dtype);
  check_bin_counts({bins}, "torch.histogram");
  const double low = min.toDouble();
  const double high = max.toDouble();
  TORCH_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histc: range of [", low, ", ", high, "] is not finite");
  TORCH_CHECK(low <= high, "torch.histc: max must be larger than min");
  if (low == high) {
    check_finite("torch.histc", self);
  }
  return output_of({bins}, self.scalar_type()).allowing({.expands = true});
}

SpecPair meta_histogram(const at::Tensor& self, const at::Tensor& bins, MaybeTensor weight, bool /*density*/) {
  check_dtype(self, "histogramdd");
  check_bin_tensors(self, bins);
  check_weight_of_elements(self, weight);
  return {output_of({bins.numel() - 1}, self.scalar_type()),
          output_of({bins.numel()}, self.scalar_type()).allowing({.elsewhere = true})};
}

SpecPair meta_histogram_of_count(const at::Tensor& self, int64_t bins, const MaybeRange& range, MaybeTensor weight,
                                 bool /*density*/) {
  check_dtype(self, "histogramdd");
  check_bin_counts({bins}, "torch.histogram");
  check_weight_of_elements(self, weight);
  check_range(self, range, 1);
  return {output_of({bins}, self.scalar_type()), output_of({bins + 1}, self.scalar_type())};
}

void check_points(const at::Tensor& self, size_t coordinates, MaybeTensor weight) {
  if (self.numel() > 0 || !at::isFloatingType(self.scalar_type())) {
    check_dtype(self, "histogramdd");
  }
  TORCH_CHECK(self.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions, but got ",
              self.dim());
  TORCH_CHECK(static_cast<size_t>(self.size(-1)) == coordinates,
              "histogramdd: The size of bins must be equal to the innermost dimension of the input.");
  if (is_given(weight)) {
    const c10::IntArrayRef points = self.sizes().slice(0, static_cast<size_t>(self.dim() - 1));
    check_weight(self, *weight, weight->sizes(), points, self.size(-1));
  }
}

OutputSpec meta_histogramdd_of_counts(const at::Tensor& self, c10::IntArrayRef bins, const MaybeRange& range,
                                      MaybeTensor weight, bool /*density*/) {
  check_points(self, bins.size(), weight);
  check_bin_counts(bins, "torch.histogramdd");
  check_range(self, range, bins.size());
  return output_of(bins, self.scalar_type());
}

OutputSpec meta_histogramdd(const at::Tensor& self, at::TensorList bins, MaybeTensor weight, bool /*density*/) {
  check_points(self, bins.size(), weight);
  check_bin_tensors(self, bins);
  OutputSpec spec = output_of({}, self.scalar_type());
  for (const at::Tensor& edges : bins) {
    spec.sizes.push_back(edges.numel() - 1);
  }
  return spec;
}

void bin_edges_kernel(const at::Tensor& self, c10::IntArrayRef bins, MaybeRange range, MaybeTensor weight, bool density,
                      at::TensorList outputs) {
  const std::vector<at::Tensor> edges = at::cpu::_histogramdd_bin_edges(self, bins, range, weight, density);
  for (size_t i = 0; i < edges.size(); ++i) {
    outputs[i].copy_(edges[i]);
  }
}

std::vector<at::Tensor> histogramdd_bin_edges(const at::Tensor& self, c10::IntArrayRef bins, MaybeRange range,
                                              MaybeTensor weight, bool density) {
  constexpr Operator kBinEdges{"aten::_histogramdd_bin_edges"};
  const OperandDeviceGuard device(kBinEdges, self, weight);
  meta_histogramdd_of_counts(self, bins, range, weight, density);
  std::vector<at::Tensor> outputs;
  for (const int64_t count : bins) {
    outputs.push_back(make_output({count + 1}, {}, self.options()));
  }
  constexpr std::array kAccesses{orAccessRead, orAccessRead, orAccessRead, orAccessRead, orAccessRead, orAccessWrite};
  launch_owned<const at::Tensor&, c10::IntArrayRef, MaybeRange, MaybeTensor, bool, OutputList>(
      kBinEdges, device, sync_policy_of(kBinEdges, self), kAccesses.data(), &bin_edges_kernel, self, bins, range,
      weight, density, OutputList{outputs});
  return outputs;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::_histogramdd_bin_edges>(library, histogramdd_bin_edges);
  unstructured<meta_histogramdd_of_counts, op::_histogramdd_from_bin_cts>(library, cpu::_histogramdd_from_bin_cts);
  unstructured<meta_histogramdd, op::_histogramdd_from_bin_tensors>(library, cpu::_histogramdd_from_bin_tensors);
  unstructured<meta_histc, op::histc>(library, computed_in<integer_as_double, cpu::histc_outf>);
  unstructured<meta_histogram_of_count, op::histogram_bin_ct>(library, cpu::histogram_outf);
  unstructured<meta_histogram, op::histogram_bins_tensor>(library, cpu::histogram_outf);
}

}  // namespace

}  // namespace openreg::ops
