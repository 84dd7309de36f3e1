// SPDX-License-Identifier: BSD-3-Clause
// The cells of LSTM and GRU with backward, with one launch per step of the sequence. On a GPU or a PrivateUse1 device,
// PyTorch composes nn.LSTM, nn.GRU and their cells of these operators, and computes the products with weights before.
// Each device defines the content of the workspace, which forward saves for backward.
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>

#include "launch/derivative.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

constexpr Operator kLstmCell{"aten::_thnn_fused_lstm_cell"};
constexpr Operator kLstmCellBackward{"aten::_thnn_fused_lstm_cell_backward_impl"};
constexpr Operator kGruCell{"aten::_thnn_fused_gru_cell"};
constexpr Operator kGruCellBackward{"aten::_thnn_fused_gru_cell_backward"};

// Throws c10::Error if the operands do not match. Gates are (batch, count * hidden size), and the hidden state is
// (batch, hidden size).
void check_cell(const char* name, const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                const at::Tensor& hidden, MaybeTensor input_bias, MaybeTensor hidden_bias, int64_t count) {
  TORCH_CHECK(input_gates.dim() == 2 && input_gates.sizes() == hidden_gates.sizes(), name,
              ": expected the gates of the input and of the hidden state as matrices of one shape, but got ",
              input_gates.sizes(), " and ", hidden_gates.sizes());
  TORCH_CHECK(
      hidden.dim() == 2 && hidden.size(0) == input_gates.size(0) && hidden.size(1) * count == input_gates.size(1), name,
      ": expected a hidden state of shape [", input_gates.size(0), ", ", input_gates.size(1) / count, "], but got ",
      hidden.sizes());
  TORCH_CHECK(is_given(input_bias) == is_given(hidden_bias), name, ": expected both biases or none");
  for (const auto& bias : {input_bias, hidden_bias}) {
    TORCH_CHECK(!is_given(bias) || bias->numel() == input_gates.size(1), name, ": expected biases of ",
                input_gates.size(1), " elements, but got ", bias->sizes());
  }
  const auto check_dtype = [&](const at::Tensor& tensor) {
    TORCH_CHECK(tensor.scalar_type() == input_gates.scalar_type(), name, ": expected all operands to be ",
                input_gates.scalar_type(), ", but got ", tensor.scalar_type());
  };
  for_each_tensor(check_dtype, hidden_gates);
  for_each_tensor(check_dtype, hidden);
  for_each_tensor(check_dtype, input_bias);
  for_each_tensor(check_dtype, hidden_bias);
}

// Throws c10::Error unless the workspace that forward saves for backward consists of `count` equal parts.
void check_workspace(const char* name, const at::Tensor& workspace, int64_t count) {
  TORCH_CHECK(
      workspace.dim() == 2 && workspace.size(1) % count == 0 && (dtype_bit(workspace.scalar_type()) & kFloating) != 0,
      name, ": expected the workspace that the forward operator gives, (batch, ", count,
      " * hidden size) of a floating dtype, but got ", workspace.sizes(), " of ", workspace.scalar_type());
}

// Returns part `index` of the columns, which are divided into `count` equal parts.
at::Tensor part(const at::Tensor& tensor, int64_t index, int64_t count) {
  const int64_t width = tensor.size(1) / count;
  return tensor.narrow(1, index * width, width);
}

// LSTM. The workspace holds the gates after their activation: input, forget, cell, output.

void lstm_kernel(const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& cx,
                 MaybeTensor input_bias, MaybeTensor hidden_bias, at::Tensor& hy, at::Tensor& cy, at::Tensor& gates) {
  at::add_out(gates, input_gates, hidden_gates);
  if (is_given(input_bias)) {
    gates.add_(*input_bias).add_(*hidden_bias);
  }
  at::Tensor input_and_forget = gates.narrow(1, 0, gates.size(1) / 2);
  at::Tensor cell = part(gates, 2, 4);
  at::Tensor output = part(gates, 3, 4);
  input_and_forget.sigmoid_();
  cell.tanh_();
  output.sigmoid_();
  at::mul_out(cy, part(gates, 1, 4), cx);
  cy.addcmul_(part(gates, 0, 4), cell);
  at::tanh_out(hy, cy);
  hy.mul_(output);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                                         const at::Tensor& cx, MaybeTensor input_bias,
                                                         MaybeTensor hidden_bias) {
  const OperandDeviceGuard device(kLstmCell, input_gates, hidden_gates, cx, input_bias, hidden_bias);
  check_cell(kLstmCell.name, input_gates, hidden_gates, cx, input_bias, hidden_bias, 4);
  at::Tensor hy = make_output(cx.sizes(), {}, cx.options());
  at::Tensor cy = make_output(cx.sizes(), {}, cx.options());
  at::Tensor workspace = make_output(input_gates.sizes(), {}, input_gates.options());
  launch(kLstmCell, device, &lstm_kernel, input_gates, hidden_gates, cx, input_bias, hidden_bias, hy, cy, workspace);
  return {std::move(hy), std::move(cy), std::move(workspace)};
}

void lstm_backward_kernel(MaybeTensor grad_hy, MaybeTensor grad_cy, const at::Tensor& cx, const at::Tensor& cy,
                          const at::Tensor& gates, at::Tensor& grad_gates, at::Tensor& grad_cx, at::Tensor& grad_bias) {
  const at::Tensor input = part(gates, 0, 4);
  const at::Tensor forget = part(gates, 1, 4);
  const at::Tensor cell = part(gates, 2, 4);
  const at::Tensor output = part(gates, 3, 4);
  at::Tensor of_input = part(grad_gates, 0, 4);
  at::Tensor of_forget = part(grad_gates, 1, 4);
  at::Tensor of_cell = part(grad_gates, 2, 4);
  at::Tensor of_output = part(grad_gates, 3, 4);
  const at::Tensor activated = at::tanh(cy);
  // grad_cx accumulates the gradient of cy: that of the next step, and the one through hy.
  if (is_given(grad_hy)) {
    at::tanh_backward_out(grad_cx, at::mul(*grad_hy, output), activated);
    at::sigmoid_backward_out(of_output, at::mul(*grad_hy, activated), output);
  } else {
    grad_cx.zero_();
    of_output.zero_();
  }
  if (is_given(grad_cy)) {
    grad_cx.add_(*grad_cy);
  }
  at::sigmoid_backward_out(of_input, at::mul(grad_cx, cell), input);
  at::sigmoid_backward_out(of_forget, at::mul(grad_cx, cx), forget);
  at::tanh_backward_out(of_cell, at::mul(grad_cx, input), cell);
  grad_cx.mul_(forget);
  if (grad_bias.defined()) {
    at::sum_out(grad_bias, grad_gates, 0);
  }
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(MaybeTensor grad_hy, MaybeTensor grad_cy,
                                                                  const at::Tensor& cx, const at::Tensor& cy,
                                                                  const at::Tensor& workspace, bool has_bias) {
  if (!is_given(grad_hy) && !is_given(grad_cy)) {
    return {};
  }
  const OperandDeviceGuard device(kLstmCellBackward, cx, cy, workspace, grad_hy, grad_cy);
  check_workspace(kLstmCellBackward.name, workspace, 4);
  const c10::DimVector state{workspace.size(0), workspace.size(1) / 4};
  const c10::ScalarType dtype = workspace.scalar_type();
  expect(kLstmCellBackward.name, "grad_hy", grad_hy, state, dtype);
  expect(kLstmCellBackward.name, "grad_cy", grad_cy, state, dtype);
  expect(kLstmCellBackward.name, "cx", cx, state, dtype);
  expect(kLstmCellBackward.name, "cy", cy, state, dtype);
  at::Tensor grad_gates = make_output(workspace.sizes(), {}, workspace.options());
  at::Tensor grad_cx = make_output(cx.sizes(), {}, cx.options());
  at::Tensor grad_bias = output_if(has_bias, {workspace.size(1)}, workspace.options());
  launch(kLstmCellBackward, device, &lstm_backward_kernel, grad_hy, grad_cy, cx, cy, workspace, grad_gates, grad_cx,
         grad_bias);
  return {std::move(grad_gates), std::move(grad_cx), std::move(grad_bias)};
}

// GRU. The workspace holds the gates after their activation: reset, update and new. Then it holds the hidden state, and
// the operand that the reset gate multiplies.

void gru_kernel(const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& hx,
                MaybeTensor input_bias, MaybeTensor hidden_bias, at::Tensor& hy, at::Tensor& workspace) {
  const int64_t width = hx.size(1);
  const auto with_bias = [](at::Tensor out, const at::Tensor& gates, MaybeTensor bias, int64_t from, int64_t count) {
    const at::Tensor columns = gates.narrow(1, from, count);
    if (is_given(bias)) {
      at::add_out(out, columns, bias->narrow(0, from, count));
    } else {
      out.copy_(columns);
    }
  };
  at::Tensor reset_and_update = workspace.narrow(1, 0, 2 * width);
  at::Tensor fresh = part(workspace, 2, 5);
  at::Tensor of_hidden = part(workspace, 4, 5);
  at::add_out(reset_and_update, input_gates.narrow(1, 0, 2 * width), hidden_gates.narrow(1, 0, 2 * width));
  if (is_given(input_bias)) {
    reset_and_update.add_(input_bias->narrow(0, 0, 2 * width)).add_(hidden_bias->narrow(0, 0, 2 * width));
  }
  reset_and_update.sigmoid_();
  with_bias(of_hidden, hidden_gates, hidden_bias, 2 * width, width);
  with_bias(fresh, input_gates, input_bias, 2 * width, width);
  fresh.addcmul_(part(workspace, 0, 5), of_hidden).tanh_();
  part(workspace, 3, 5).copy_(hx);
  at::sub_out(hy, hx, fresh);
  hy.mul_(part(workspace, 1, 5)).add_(fresh);
}

std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                            const at::Tensor& hx, MaybeTensor input_bias, MaybeTensor hidden_bias) {
  const OperandDeviceGuard device(kGruCell, input_gates, hidden_gates, hx, input_bias, hidden_bias);
  check_cell(kGruCell.name, input_gates, hidden_gates, hx, input_bias, hidden_bias, 3);
  at::Tensor hy = make_output(hx.sizes(), {}, hx.options());
  at::Tensor workspace = make_output({hx.size(0), 5 * hx.size(1)}, {}, hx.options());
  launch(kGruCell, device, &gru_kernel, input_gates, hidden_gates, hx, input_bias, hidden_bias, hy, workspace);
  return {std::move(hy), std::move(workspace)};
}

void gru_backward_kernel(const at::Tensor& grad_hy, const at::Tensor& workspace, at::Tensor& grad_input_gates,
                         at::Tensor& grad_hidden_gates, at::Tensor& grad_hx, at::Tensor& grad_input_bias,
                         at::Tensor& grad_hidden_bias) {
  const at::Tensor reset = part(workspace, 0, 5);
  const at::Tensor update = part(workspace, 1, 5);
  const at::Tensor fresh = part(workspace, 2, 5);
  const at::Tensor hx = part(workspace, 3, 5);
  const at::Tensor of_hidden = part(workspace, 4, 5);
  at::Tensor of_reset = part(grad_input_gates, 0, 3);
  at::Tensor of_update = part(grad_input_gates, 1, 3);
  at::Tensor of_fresh = part(grad_input_gates, 2, 3);
  at::mul_out(grad_hx, grad_hy, update);
  at::tanh_backward_out(of_fresh, at::sub(grad_hy, grad_hx), fresh);
  at::sigmoid_backward_out(of_update, at::sub(hx, fresh).mul_(grad_hy), update);
  at::sigmoid_backward_out(of_reset, at::mul(of_fresh, of_hidden), reset);
  grad_hidden_gates.copy_(grad_input_gates);
  part(grad_hidden_gates, 2, 3).mul_(reset);
  if (grad_input_bias.defined()) {
    at::sum_out(grad_input_bias, grad_input_gates, 0);
    at::sum_out(grad_hidden_bias, grad_hidden_gates, 0);
  }
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> gru_cell_backward(const at::Tensor& grad_hy,
                                                                                         const at::Tensor& workspace,
                                                                                         bool has_bias) {
  const OperandDeviceGuard device(kGruCellBackward, grad_hy, workspace);
  check_workspace(kGruCellBackward.name, workspace, 5);
  expect(kGruCellBackward.name, "grad_hy", grad_hy, {workspace.size(0), workspace.size(1) / 5},
         workspace.scalar_type());
  const int64_t batch = workspace.size(0);
  const int64_t width = workspace.size(1) / 5;
  const auto options = workspace.options();
  at::Tensor grad_input_gates = make_output({batch, 3 * width}, {}, options);
  at::Tensor grad_hidden_gates = make_output({batch, 3 * width}, {}, options);
  at::Tensor grad_hx = make_output({batch, width}, {}, options);
  at::Tensor grad_input_bias = output_if(has_bias, {3 * width}, options);
  at::Tensor grad_hidden_bias = output_if(has_bias, {3 * width}, options);
  launch(kGruCellBackward, device, &gru_backward_kernel, grad_hy, workspace, grad_input_gates, grad_hidden_gates,
         grad_hx, grad_input_bias, grad_hidden_bias);
  return {std::move(grad_input_gates), std::move(grad_hidden_gates), std::move(grad_hx), std::move(grad_input_bias),
          std::move(grad_hidden_bias)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::_thnn_fused_lstm_cell>(library, lstm_cell);
  function<op::_thnn_fused_lstm_cell_backward_impl>(library, lstm_cell_backward);
  function<op::_thnn_fused_gru_cell>(library, gru_cell);
  function<op::_thnn_fused_gru_cell_backward>(library, gru_cell_backward);
}

}  // namespace

}  // namespace openreg::ops
