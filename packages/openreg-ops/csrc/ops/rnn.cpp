// SPDX-License-Identifier: BSD-3-Clause
// nn.GRU and nn.RNN without gradients: PyTorch's composite form, which takes some launches per time step, in one
// launch. With gradients it is composed as always, so that autograd records it.
#include <ATen/ops/gru.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/rnn_relu.h>
#include <ATen/ops/rnn_relu_native.h>
#include <ATen/ops/rnn_tanh.h>
#include <ATen/ops/rnn_tanh_native.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <algorithm>

#include "common/launch_function.h"
#include "ops/rnn_operands.h"

namespace openreg::ops {

namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;
using Network = Pair(const at::Tensor&, const at::Tensor&, at::TensorList, bool, int64_t, double, bool, bool, bool);

struct Gru {
  static constexpr const char* kName = "aten::gru";
  static constexpr int64_t kGates = 3;
  static constexpr Network* kComposite = &at::native::gru;
};
struct RnnTanh {
  static constexpr const char* kName = "aten::rnn_tanh";
  static constexpr int64_t kGates = 1;
  static constexpr Network* kComposite = &at::native::rnn_tanh;
};
struct RnnRelu {
  static constexpr const char* kName = "aten::rnn_relu";
  static constexpr int64_t kGates = 1;
  static constexpr Network* kComposite = &at::native::rnn_relu;
};

template <class Kind>
void kernel(const at::Tensor& input, const at::Tensor& hx, at::TensorList params, RnnShape shape, bool batch_first,
            at::Tensor& output, at::Tensor& hy) {
  const auto [of_output, of_hy] = Kind::kComposite(input, hx, params, shape.has_biases, shape.layers, /*dropout_p=*/0,
                                                   /*train=*/false, shape.directions == 2, batch_first);
  output.copy_(batch_first ? of_output.transpose(0, 1) : of_output);
  hy.copy_(of_hy);
}

bool needs_gradients(const at::Tensor& input, const at::Tensor& hx, at::TensorList params) {
  const auto needs = [](const at::Tensor& tensor) { return tensor.requires_grad(); };
  return c10::GradMode::is_enabled() && (needs(input) || needs(hx) || std::any_of(params.begin(), params.end(), needs));
}

template <class Kind>
Pair rnn(const at::Tensor& input, const at::Tensor& hx, at::TensorList params, bool has_biases, int64_t num_layers,
         double dropout, bool train, bool bidirectional, bool batch_first) {
  const RnnShape shape{Kind::kGates, num_layers, bidirectional ? 2 : 1, has_biases};
  const bool drops = train && dropout != 0 && num_layers > 1;
  if (drops || needs_gradients(input, hx, params) || !are_plain(input, hx, params) ||
      !are_usual(input, hx, params, shape) || hx.size(1) != input.size(batch_first ? 0 : 1)) {
    return Kind::kComposite(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);
  }
  const CurrentDevice current(input.device());
  const auto options = input.options().memory_format(std::nullopt);
  // In memory, steps come first.
  const int64_t steps = input.size(batch_first ? 1 : 0);
  at::Tensor output = make_output({steps, hx.size(1), hx.size(2) * shape.directions}, {}, options);
  at::Tensor hy = make_output(hx.sizes(), {}, options);
  launch_function(Kind::kName, input.device(), &kernel<Kind>, input, hx, params, shape, batch_first, output, hy);
  return {batch_first ? output.transpose(0, 1) : std::move(output), std::move(hy)};
}

void implement(torch::Library& library) {
  library.impl("gru.input", TORCH_FN(rnn<Gru>));
  library.impl("rnn_tanh.input", TORCH_FN(rnn<RnnTanh>));
  library.impl("rnn_relu.input", TORCH_FN(rnn<RnnRelu>));
}

// Composite operators are made above autograd, where the operators within are recorded.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, library) {
  implement(library);
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  implement(library);
}

}  // namespace

}  // namespace openreg::ops
