// SPDX-License-Identifier: BSD-3-Clause
// Overrides of nn.LSTM, nn.GRU and nn.RNN that run whole layers, or the whole network in one launch. PyTorch composes
// them step by step for every device except the CPU. Operands that are not supported here go to that composite, which
// throws if they are wrong, or supports them.
#include <ATen/Context.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/mkldnn_rnn_layer.h>
#include <ATen/ops/rnn_relu_native.h>
#include <ATen/ops/rnn_tanh_native.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "registration/declare.h"

namespace openreg::ops {

namespace {

// The structure of a network. A cell has 4 gates in an LSTM, 3 in a GRU and 1 in an RNN.
struct RnnShape {
  int64_t gates;
  int64_t layers;
  int64_t directions;
  bool has_biases;
};

// Returns the parameters of one layer and direction: two matrices, then two biases if there are any.
at::TensorList parameters_of(at::TensorList params, int64_t index, bool has_biases) {
  const size_t count = has_biases ? 4 : 2;
  return params.slice(static_cast<size_t>(index) * count, count);
}

// Returns true if input, states and parameters have one device and dtype, and their sizes match. The input has three
// dimensions (steps or batch first), and states are (layers and directions, batch, hidden). Networks with projections,
// for example, do not match. Does not compare batch sizes.
bool are_supported(const at::Tensor& input, at::TensorList states, at::TensorList params, const RnnShape& shape) {
  const auto alike = [&](const at::Tensor& tensor) {
    return tensor.device() == input.device() && tensor.scalar_type() == input.scalar_type();
  };
  const int64_t count = shape.layers * shape.directions;
  if (input.dim() != 3 || input.numel() == 0 || states.empty() || states[0].dim() != 3 || states[0].size(0) != count ||
      params.size() != static_cast<size_t>(count * (shape.has_biases ? 4 : 2)) ||
      !std::all_of(states.begin(), states.end(), alike) || !std::all_of(params.begin(), params.end(), alike)) {
    return false;
  }
  const auto same_size = [&](const at::Tensor& state) { return state.sizes() == states[0].sizes(); };
  if (!std::all_of(states.begin(), states.end(), same_size)) {
    return false;
  }
  const int64_t hidden = states[0].size(2);
  const int64_t rows = shape.gates * hidden;
  for (int64_t index = 0; index < count; ++index) {
    const at::TensorList own = parameters_of(params, index, shape.has_biases);
    const int64_t width = index < shape.directions ? input.size(2) : hidden * shape.directions;
    const auto is_bias = [&](const at::Tensor& bias) { return bias.sizes() == c10::IntArrayRef{rows}; };
    if (own[0].sizes() != c10::IntArrayRef{rows, width} || own[1].sizes() != c10::IntArrayRef{rows, hidden} ||
        !std::all_of(own.begin() + 2, own.end(), is_bias)) {
      return false;
    }
  }
  return hidden > 0;
}

// Returns true if neither autocast nor a function transform is active, because these have rules only for the operators
// of the composite.
bool are_plain(const at::Tensor& input, at::TensorList states, at::TensorList params) {
  const auto is_plain = [](const at::Tensor& tensor) {
    return (tensor.key_set() & at::kTensorSubclassLike).empty() && !tensor._fw_grad(0).defined();
  };
  return !at::autocast::is_autocast_enabled(at::kPrivateUse1) && is_plain(input) &&
         std::all_of(states.begin(), states.end(), is_plain) && std::all_of(params.begin(), params.end(), is_plain);
}

// LSTM. This device uses oneDNN if the CPU does, because oneDNN computes a layer and direction at once.

using Triple = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

bool onednn_supports(const char* question) {
  const auto operation = c10::Dispatcher::singleton().findSchema({question, ""});
  return operation.has_value() && operation->typed<bool()>().call();
}

bool has_kernel_for(c10::ScalarType dtype) {
  if (!at::hasMKLDNN() || !at::globalContext().userEnabledMkldnn()) {
    return false;
  }
  switch (dtype) {
    case at::kFloat:
      return true;
    case at::kBFloat16: {
      static const bool supported = onednn_supports("mkldnn::_is_mkldnn_bf16_supported");
      return supported;
    }
    case at::kHalf: {
      static const bool supported = onednn_supports("mkldnn::_is_mkldnn_fp16_supported");
      return supported && !c10::GradMode::is_enabled();
    }
    default:
      return false;
  }
}

at::Tensor stacked(const std::vector<at::Tensor>& states) {
  return states.size() == 1 ? states[0].unsqueeze(0) : at::stack(states);
}

Triple lstm_by_layers(const at::Tensor& batch, at::TensorList states, at::TensorList params, bool has_biases,
                      int64_t num_layers, double dropout, bool train, int64_t directions, bool batch_first) {
  constexpr int64_t kLstm = 2;
  const at::Tensor hx = states[0].contiguous();
  const at::Tensor cx = states[1].contiguous();
  const int64_t hidden = hx.size(2);
  at::Tensor input = (batch_first ? batch.transpose(0, 1) : batch).contiguous();
  const at::Tensor no_bias = has_biases ? at::Tensor() : at::zeros({4 * hidden}, params[0].options());
  std::vector<at::Tensor> hy;
  std::vector<at::Tensor> cy;
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    std::vector<at::Tensor> outputs;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const int64_t index = layer * directions + direction;
      const at::TensorList own = parameters_of(params, index, has_biases);
      auto [output, h, c, workspace] = at::mkldnn_rnn_layer(
          input, own[0].contiguous(), own[1].contiguous(), has_biases ? own[2].contiguous() : no_bias,
          has_biases ? own[3].contiguous() : no_bias, hx.select(0, index), cx.select(0, index), direction > 0, {},
          kLstm, hidden, num_layers, has_biases, directions == 2, batch_first, train);
      outputs.push_back(std::move(output));
      hy.push_back(std::move(h));
      cy.push_back(std::move(c));
    }
    input = directions == 1 ? outputs[0] : at::cat(outputs, -1);
    if (dropout != 0 && train && layer < num_layers - 1) {
      input = at::dropout(input, dropout, true);
    }
  }
  return {batch_first ? input.transpose(0, 1) : input, stacked(hy), stacked(cy)};
}

Triple lstm(const at::Tensor& input, at::TensorList hx, at::TensorList params, bool has_biases, int64_t num_layers,
            double dropout, bool train, bool bidirectional, bool batch_first) {
  const int64_t directions = bidirectional ? 2 : 1;
  const RnnShape shape{/*gates=*/4, num_layers, directions, has_biases};
  if (!has_kernel_for(input.scalar_type()) || !are_plain(input, hx, params) || hx.size() != 2 ||
      !are_supported(input, hx, params, shape) || hx[0].size(1) != input.size(batch_first ? 0 : 1)) {
    return at::native::lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);
  }
  return lstm_by_layers(input, hx, params, has_biases, num_layers, dropout, train, directions, batch_first);
}

// GRU and RNN. Without gradients, one launch runs the composite, which would otherwise need several launches per time
// step. With gradients, the composite runs on the host as usual, so that autograd records it.

using Pair = std::tuple<at::Tensor, at::Tensor>;
using Network = Pair(const at::Tensor&, const at::Tensor&, at::TensorList, bool, int64_t, double, bool, bool, bool);

template <Network* kComposite>
void kernel(const at::Tensor& input, const at::Tensor& hx, at::TensorList params, RnnShape shape, bool batch_first,
            at::Tensor& output, at::Tensor& hy) {
  const auto [of_output, of_hy] = kComposite(input, hx, params, shape.has_biases, shape.layers, /*dropout_p=*/0,
                                             /*train=*/false, shape.directions == 2, batch_first);
  output.copy_(batch_first ? of_output.transpose(0, 1) : of_output);
  hy.copy_(of_hy);
}

bool needs_gradients(const at::Tensor& input, const at::Tensor& hx, at::TensorList params) {
  const auto needs = [](const at::Tensor& tensor) { return tensor.requires_grad(); };
  return c10::GradMode::is_enabled() && (needs(input) || needs(hx) || std::any_of(params.begin(), params.end(), needs));
}

template <class Op, Network* kComposite, int64_t kGates>
Pair network(const at::Tensor& input, const at::Tensor& hx, at::TensorList params, bool has_biases, int64_t num_layers,
             double dropout, bool train, bool bidirectional, bool batch_first) {
  const RnnShape shape{kGates, num_layers, bidirectional ? 2 : 1, has_biases};
  const bool drops = train && dropout != 0 && num_layers > 1;
  if (drops || needs_gradients(input, hx, params) || !are_plain(input, hx, params) ||
      !are_supported(input, hx, params, shape) || hx.size(1) != input.size(batch_first ? 0 : 1)) {
    return kComposite(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);
  }
  const CurrentDeviceGuard current(input.device());
  const auto options = input.options().memory_format(std::nullopt);
  // In memory, steps come first.
  const int64_t steps = input.size(batch_first ? 1 : 0);
  at::Tensor output = make_output({steps, hx.size(1), hx.size(2) * shape.directions}, {}, options);
  at::Tensor hy = make_output(hx.sizes(), {}, options);
  launch({Op::name}, input.device(), &kernel<kComposite>, input, hx, params, shape, batch_first, output, hy);
  return {batch_first ? output.transpose(0, 1) : std::move(output), std::move(hy)};
}

constexpr Network* kGru = network<op::gru_input, at::native::gru, 3>;
constexpr Network* kRnnTanh = network<op::rnn_tanh_input, at::native::rnn_tanh, 1>;
constexpr Network* kRnnRelu = network<op::rnn_relu_input, at::native::rnn_relu, 1>;

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::lstm_input>(library, lstm);
  function<op::gru_input>(library, kGru);
  function<op::rnn_tanh_input>(library, kRnnTanh);
  function<op::rnn_relu_input>(library, kRnnRelu);
}

// Registers the overrides above autograd, too, as PyTorch does with composites, so that autograd records the operators
// within them.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, library) {
  library.impl("lstm.input", lstm);
  library.impl("gru.input", kGru);
  library.impl("rnn_tanh.input", kRnnTanh);
  library.impl("rnn_relu.input", kRnnRelu);
}

}  // namespace

}  // namespace openreg::ops
