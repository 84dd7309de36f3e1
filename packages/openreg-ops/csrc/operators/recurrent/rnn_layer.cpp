// SPDX-License-Identifier: BSD-3-Clause
// One direction of one layer of an LSTM over a whole sequence, with backward, by oneDNN's kernels in 1 launch each.
// PyTorch has the derivative of these two operators. rnn.cpp decides when they are used.
#include <c10/core/GradMode.h>

#include <algorithm>

#include "launch/derivative.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

constexpr Operator kRnnLayer{op::mkldnn_rnn_layer::name};
constexpr Operator kRnnLayerBackward{op::mkldnn_rnn_layer_backward::name};

constexpr int64_t kLstmMode = 2;  // the number of an LSTM in PyTorch's oneDNN functions

// The size of the workspace's header in bytes. The header contains the number of bytes after it, or 0 if oneDNN's data
// are not there.
constexpr int64_t kHeader = 64;

// Returns an upper bound of the workspace in bytes, because oneDNN determines its size only when it runs. For large
// layers the bound exceeds that size by a sixth. If the bound is ever too small, backward computes the workspace again.
int64_t workspace_bound(int64_t steps, int64_t batch, int64_t width, int64_t hidden) {
  const auto padded = [](int64_t count) { return (count + 15) / 16 * 16 + 16; };
  const int64_t gates = steps * (padded(4 * hidden) + 4 * padded(hidden));
  const int64_t states = 8 * (steps + 1) * padded(std::max(width, hidden));
  return kHeader + (1 << 16) + static_cast<int64_t>(sizeof(float)) * batch * (gates + states);
}

int64_t& workspace_bytes_field(const at::Tensor& workspace) {
  return *static_cast<int64_t*>(workspace.mutable_data_ptr());
}

// The operands of forward and backward. The result is (steps, batch, hidden size).
struct LayerOperands {
  const at::Tensor& input;
  const at::Tensor& weight0;
  const at::Tensor& weight1;
  const at::Tensor& weight2;
  const at::Tensor& weight3;
  const at::Tensor& hx;
  const at::Tensor& cx;
};

c10::DimVector check_layer(const char* name, const LayerOperands& x, int64_t mode, c10::IntArrayRef batch_sizes,
                           int64_t hidden_size, bool has_biases) {
  TORCH_CHECK_NOT_IMPLEMENTED(mode == kLstmMode && batch_sizes.empty(), name,
                              ": only an LSTM of unpacked sequences has this kernel; use torch.gru or torch.lstm");
  TORCH_CHECK(x.input.dim() == 3 && x.hx.dim() == 2 && x.hx.size(0) == x.input.size(1) && x.hx.size(1) == hidden_size &&
                  x.cx.sizes() == x.hx.sizes(),
              name, ": expected an input of (steps, batch, width) and states of (batch, ", hidden_size, "), but got ",
              x.input.sizes(), ", ", x.hx.sizes(), " and ", x.cx.sizes());
  const int64_t gates = 4 * hidden_size;
  const auto is_bias = [gates](const at::Tensor& bias) { return bias.dim() == 1 && bias.numel() == gates; };
  TORCH_CHECK(x.weight0.dim() == 2 && x.weight1.dim() == 2 && x.weight0.numel() == gates * x.input.size(2) &&
                  x.weight1.numel() == gates * hidden_size && x.weight2.numel() >= gates &&
                  x.weight3.numel() >= gates && (!has_biases || (is_bias(x.weight2) && is_bias(x.weight3))),
              name, ": expected weights for ", gates, " gates of ", x.input.size(2), " inputs and ", hidden_size,
              " states, but got ", x.weight0.sizes(), ", ", x.weight1.sizes(), ", ", x.weight2.sizes(), " and ",
              x.weight3.sizes());
  const auto check_dtype = [&](const at::Tensor& tensor) {
    TORCH_CHECK(tensor.scalar_type() == x.input.scalar_type(), name, ": expected all operands to be ",
                x.input.scalar_type(), ", but got ", tensor.scalar_type());
  };
  for (const at::Tensor& tensor : {x.weight0, x.weight1, x.weight2, x.weight3, x.hx, x.cx}) {
    check_dtype(tensor);
  }
  return {x.input.size(0), x.input.size(1), hidden_size};
}

struct Layer {
  bool reverse;
  int64_t hidden;
  int64_t layers;
  bool has_biases;
  bool bidirectional;
  bool batch_first;
  bool train;
};

auto run_forward(const at::Tensor& input, const at::Tensor& weight0, const at::Tensor& weight1,
                 const at::Tensor& weight2, const at::Tensor& weight3, const at::Tensor& hx, const at::Tensor& cx,
                 const Layer& layer) {
  return cpu::mkldnn_rnn_layer(input, weight0, weight1, weight2, weight3, hx, cx, layer.reverse, {}, kLstmMode,
                               layer.hidden, layer.layers, layer.has_biases, layer.bidirectional, layer.batch_first,
                               layer.train);
}

void rnn_layer_kernel(const at::Tensor& input, const at::Tensor& weight0, const at::Tensor& weight1,
                      const at::Tensor& weight2, const at::Tensor& weight3, const at::Tensor& hx, const at::Tensor& cx,
                      Layer layer, at::Tensor& output, at::Tensor& hy, at::Tensor& cy, at::Tensor& workspace) {
  const bool training = workspace.defined();
  const at::Tensor content = training ? workspace.narrow(0, kHeader, workspace.numel() - kHeader) : at::Tensor();
  OutputRedirectGuard results({output, hy, cy}, content);
  const c10::AutoGradMode keeps_workspace(training);
  const auto [of_output, of_hy, of_cy, of_workspace] =
      run_forward(input, weight0, weight1, weight2, weight3, hx, cx, layer);
  results.put({of_output, of_hy, of_cy});
  if (training) {
    workspace_bytes_field(workspace) = of_workspace.is_alias_of(workspace) ? of_workspace.numel() : 0;
  }
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> rnn_layer(
    const at::Tensor& input, const at::Tensor& weight0, const at::Tensor& weight1, const at::Tensor& weight2,
    const at::Tensor& weight3, const at::Tensor& hx, const at::Tensor& cx, bool reverse, c10::IntArrayRef batch_sizes,
    int64_t mode, int64_t hidden_size, int64_t num_layers, bool has_biases, bool bidirectional, bool batch_first,
    bool train) {
  const OperandDeviceGuard device(kRnnLayer, input, weight0, weight1, weight2, weight3, hx, cx);
  const c10::DimVector sizes = check_layer(kRnnLayer.name, {input, weight0, weight1, weight2, weight3, hx, cx}, mode,
                                           batch_sizes, hidden_size, has_biases);
  const auto options = input.options().memory_format(std::nullopt);
  at::Tensor output = make_output(sizes, {}, options);
  at::Tensor hy = make_output(hx.sizes(), {}, options);
  at::Tensor cy = make_output(cx.sizes(), {}, options);
  const int64_t bound = workspace_bound(input.size(0), input.size(1), input.size(2), hidden_size);
  at::Tensor workspace = output_if(c10::GradMode::is_enabled(), {bound}, options.dtype(at::kByte));
  const Layer layer{reverse, hidden_size, num_layers, has_biases, bidirectional, batch_first, train};
  launch(kRnnLayer, device, &rnn_layer_kernel, input, weight0, weight1, weight2, weight3, hx, cx, layer, output, hy, cy,
         workspace);
  return {std::move(output), std::move(hy), std::move(cy), std::move(workspace)};
}

void rnn_layer_backward_kernel(const at::Tensor& input, const at::Tensor& weight0, const at::Tensor& weight1,
                               const at::Tensor& weight2, const at::Tensor& weight3, const at::Tensor& hx,
                               const at::Tensor& cx, const at::Tensor& output, const at::Tensor& hy,
                               const at::Tensor& cy, MaybeTensor grad_output, MaybeTensor grad_hy, MaybeTensor grad_cy,
                               Layer layer, const at::Tensor& workspace, at::Tensor& grad_input,
                               at::Tensor& grad_weight0, at::Tensor& grad_weight1, at::Tensor& grad_bias,
                               at::Tensor& grad_hx, at::Tensor& grad_cx) {
  at::Tensor content;
  if (workspace_bytes_field(workspace) > 0) {
    content = workspace.narrow(0, kHeader, workspace_bytes_field(workspace));
  } else {
    const c10::AutoGradMode keeps_workspace(true);
    content = std::get<3>(run_forward(input, weight0, weight1, weight2, weight3, hx, cx, layer));
  }
  OutputRedirectGuard results({grad_input, grad_weight0, grad_weight1, grad_bias, grad_hx, grad_cx});
  const auto [of_input, of_weight0, of_weight1, of_bias, same_bias, of_hx, of_cx] = cpu::mkldnn_rnn_layer_backward(
      input, weight0, weight1, weight2, weight3, hx, cx, output, hy, cy, grad_output, grad_hy, grad_cy, layer.reverse,
      kLstmMode, layer.hidden, layer.layers, layer.has_biases, layer.train, layer.bidirectional, {}, layer.batch_first,
      content);
  results.put({of_input, of_weight0, of_weight1, of_bias, of_hx, of_cx});
}

using SevenTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

SevenTensors rnn_layer_backward(const at::Tensor& input, const at::Tensor& weight0, const at::Tensor& weight1,
                                const at::Tensor& weight2, const at::Tensor& weight3, const at::Tensor& hx,
                                const at::Tensor& cx, const at::Tensor& output, const at::Tensor& hy,
                                const at::Tensor& cy, MaybeTensor grad_output, MaybeTensor grad_hy, MaybeTensor grad_cy,
                                bool reverse, int64_t mode, int64_t hidden_size, int64_t num_layers, bool has_biases,
                                bool train, bool bidirectional, c10::IntArrayRef batch_sizes, bool batch_first,
                                const at::Tensor& workspace) {
  if (!is_given(grad_output) && !is_given(grad_hy) && !is_given(grad_cy)) {
    return {};
  }
  const OperandDeviceGuard device(kRnnLayerBackward, input, weight0, weight1, weight2, weight3, hx, cx, output, hy, cy,
                                  grad_output, grad_hy, grad_cy, workspace);
  constexpr const char* kName = op::mkldnn_rnn_layer_backward::name;
  const c10::DimVector sizes = check_layer(kName, {input, weight0, weight1, weight2, weight3, hx, cx}, mode,
                                           batch_sizes, hidden_size, has_biases);
  const c10::ScalarType dtype = input.scalar_type();
  expect(kName, "output", output, sizes, dtype);
  expect(kName, "grad_output", grad_output, sizes, dtype);
  expect(kName, "hy_", hy, hx.sizes(), dtype);
  expect(kName, "cy_", cy, hx.sizes(), dtype);
  expect(kName, "grad_hy", grad_hy, hx.sizes(), dtype);
  expect(kName, "grad_cy", grad_cy, hx.sizes(), dtype);
  TORCH_CHECK(workspace.scalar_type() == at::kByte && workspace.dim() == 1 && workspace.numel() >= kHeader,
              kRnnLayerBackward.name,
              ": expected the workspace that aten::mkldnn_rnn_layer gives while gradients are enabled");
  const auto gradient_of = [](const at::Tensor& operand) {
    return make_output(operand.sizes(), {}, operand.options().memory_format(std::nullopt));
  };
  at::Tensor grad_input = gradient_of(input);
  at::Tensor grad_weight0 = gradient_of(weight0);
  at::Tensor grad_weight1 = gradient_of(weight1);
  at::Tensor grad_bias = make_output({4 * hidden_size}, {}, weight0.options().memory_format(std::nullopt));
  at::Tensor grad_hx = gradient_of(hx);
  at::Tensor grad_cx = gradient_of(cx);
  const Layer layer{reverse, hidden_size, num_layers, has_biases, bidirectional, batch_first, train};
  launch(kRnnLayerBackward, device, &rnn_layer_backward_kernel, input, weight0, weight1, weight2, weight3, hx, cx,
         output, hy, cy, grad_output, grad_hy, grad_cy, layer, workspace, grad_input, grad_weight0, grad_weight1,
         grad_bias, grad_hx, grad_cx);
  // The biases have one gradient, because both are added to the same gates.
  at::Tensor grad_bias_too = grad_bias;
  return {std::move(grad_input),    std::move(grad_weight0), std::move(grad_weight1), std::move(grad_bias),
          std::move(grad_bias_too), std::move(grad_hx),      std::move(grad_cx)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::mkldnn_rnn_layer>(library, rnn_layer);
  function<op::mkldnn_rnn_layer_backward>(library, rnn_layer_backward);
}

}  // namespace

}  // namespace openreg::ops
