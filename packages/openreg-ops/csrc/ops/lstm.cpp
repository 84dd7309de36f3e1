// SPDX-License-Identifier: BSD-3-Clause
// nn.LSTM by whole layers. PyTorch composes an LSTM of products and cells, step by step, for every device but the CPU,
// where oneDNN computes a layer and direction at once. Here it does so too, for the same operands.
#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/mkldnn_rnn_layer.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include "ops/rnn_operands.h"

namespace openreg::ops {

namespace {

using Result = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

bool onednn_supports(const char* question) {
  const auto operation = c10::Dispatcher::singleton().findSchema({question, ""});
  return operation.has_value() && operation->typed<bool()>().call();
}

// Where the CPU takes oneDNN.
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

Result lstm_by_layers(const at::Tensor& batch, at::TensorList states, at::TensorList params, bool has_biases,
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

Result lstm(const at::Tensor& input, at::TensorList hx, at::TensorList params, bool has_biases, int64_t num_layers,
            double dropout, bool train, bool bidirectional, bool batch_first) {
  const int64_t directions = bidirectional ? 2 : 1;
  const RnnShape shape{/*gates=*/4, num_layers, directions, has_biases};
  if (!has_kernel_for(input.scalar_type()) || !are_plain(input, hx, params) || hx.size() != 2 ||
      !are_usual(input, hx, params, shape) || hx[0].size(1) != input.size(batch_first ? 0 : 1)) {
    return at::native::lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);
  }
  return lstm_by_layers(input, hx, params, has_biases, num_layers, dropout, train, directions, batch_first);
}

// Composite operators are made above autograd, where the operators within are recorded.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, library) {
  library.impl("lstm.input", TORCH_FN(lstm));
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("lstm.input", TORCH_FN(lstm));
}

}  // namespace

}  // namespace openreg::ops
