// SPDX-License-Identifier: BSD-3-Clause
// Connectionist temporal classification (Graves et al., ICML 2006), with backward. Lengths are arguments on the host by
// definition, so tensors of lengths are read there. Targets may also be on the host.
#include <ATen/ops/_ctc_loss_backward_native.h>
#include <ATen/ops/_ctc_loss_native.h>

#include <algorithm>

#include "launch/derivative.h"
#include "registration/declare.h"
#include "support/index_range.h"

namespace openreg::ops {

namespace {

void check_lengths(const at::Tensor& log_probs, const at::Tensor& targets, c10::IntArrayRef input_lengths,
                   c10::IntArrayRef target_lengths, int64_t blank) {
  TORCH_CHECK(log_probs.dim() == 3, "ctc_loss: log_probs must be (steps, batch, classes), but has the shape ",
              log_probs.sizes());
  TORCH_CHECK(targets.dim() == 1 || targets.dim() == 2,
              "ctc_loss: targets must have 1 or 2 dimensions, but have the shape ", targets.sizes());
  TORCH_CHECK(log_probs.numel() > 0, "ctc_loss: log_probs must not be empty, but has the shape ", log_probs.sizes());
  const int64_t batch = log_probs.size(1);
  TORCH_CHECK(blank >= 0 && blank < log_probs.size(2), "blank must be in label range");
  TORCH_CHECK(targets.scalar_type() == at::kLong || targets.scalar_type() == at::kInt,
              "_ctc_loss: targets must be of type long or int, but got ", targets.scalar_type());
  TORCH_CHECK(static_cast<int64_t>(input_lengths.size()) == batch, "input_lengths must be of size batch_size");
  TORCH_CHECK(static_cast<int64_t>(target_lengths.size()) == batch, "target_lengths must be of size batch_size");
  for (size_t i = 0; i < input_lengths.size(); ++i) {
    TORCH_CHECK(input_lengths[i] >= 0 && input_lengths[i] <= log_probs.size(0), "Expected input_lengths[", i,
                "] to be in 0 to ", log_probs.size(0), ", but got ", input_lengths[i]);
    TORCH_CHECK(target_lengths[i] >= 0, "Expected target_lengths to have value at least 0, but got value ",
                target_lengths[i]);
  }
}

// Returns the number of states of the longest path: one for each label, and a blank before and after it. Throws
// c10::Error if the targets do not match the lengths.
int64_t count_states(const at::Tensor& targets, c10::IntArrayRef target_lengths) {
  int64_t longest = 0;
  int64_t sum = 0;
  for (const int64_t length : target_lengths) {
    longest = std::max(longest, length);
    sum += length;
  }
  if (targets.dim() == 1) {
    TORCH_CHECK(targets.size(0) == sum, "Expected targets to have as many elements as target_lengths add up to, ", sum,
                ", but got ", targets.size(0));
  } else {
    TORCH_CHECK(targets.size(0) == static_cast<int64_t>(target_lengths.size()), "Expected tensor to have size ",
                target_lengths.size(), " at dimension 0, but got size ", targets.size(0),
                " for targets (while checking arguments for ctc_loss)");
    TORCH_CHECK(targets.size(1) >= longest, "Expected tensor to have size at least ", longest,
                " at dimension 1, but got size ", targets.size(1), " (while checking arguments for ctc_loss)");
  }
  return 2 * longest + 1;
}

std::array<OutputSpec, 2> meta_ctc_loss(const at::Tensor& log_probs, const at::Tensor& targets,
                                        c10::IntArrayRef input_lengths, c10::IntArrayRef target_lengths, int64_t blank,
                                        bool /*zero_infinity*/) {
  check_lengths(log_probs, targets, input_lengths, target_lengths, blank);
  const int64_t steps = log_probs.size(0);
  const int64_t batch = log_probs.size(1);
  const int64_t states = count_states(targets, target_lengths);
  return {output_of({batch}, log_probs.scalar_type()), output_of({batch, steps, states}, log_probs.scalar_type())};
}

OutputSpec meta_ctc_loss_backward(const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets,
                                  c10::IntArrayRef input_lengths, c10::IntArrayRef target_lengths,
                                  const at::Tensor& loss, const at::Tensor& log_alpha, int64_t blank,
                                  bool zero_infinity) {
  const auto [of_loss, of_alpha] =
      meta_ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity);
  expect(op::_ctc_loss_backward::name, "grad", grad, of_loss.sizes, of_loss.dtype);
  expect(op::_ctc_loss_backward::name, "neg_log_likelihood", loss, of_loss.sizes, of_loss.dtype);
  expect(op::_ctc_loss_backward::name, "log_alpha", log_alpha, of_alpha.sizes, of_alpha.dtype);
  return output_of_shape(log_probs);
}

// Throws c10::Error unless each label within the target lengths is a class, because the kernels read and write where a
// label leads. Runs on the engine thread.
void check_labels_on_engine(const char* name, const at::Tensor& log_probs, const at::Tensor& targets,
                            c10::IntArrayRef target_lengths) {
  const auto check = [&](const at::Tensor& labels) {
    TORCH_CHECK(are_within(labels, 0, log_probs.size(2)), name, ": expected labels of at least 0 and below ",
                log_probs.size(2), ", the number of classes");
  };
  if (targets.dim() == 1) {
    check(targets);
    return;
  }
  for (size_t i = 0; i < target_lengths.size(); ++i) {
    check(targets.select(0, static_cast<int64_t>(i)).narrow(0, 0, target_lengths[i]));  // padding may be anything
  }
}

std::tuple<at::Tensor, at::Tensor> ctc_loss_kernel(const at::Tensor& log_probs, const at::Tensor& targets,
                                                   c10::IntArrayRef input_lengths, c10::IntArrayRef target_lengths,
                                                   int64_t blank, bool zero_infinity) {
  check_labels_on_engine(op::_ctc_loss::name, log_probs, targets, target_lengths);
  return cpu::_ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity);
}

at::Tensor ctc_loss_backward_kernel(const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets,
                                    c10::IntArrayRef input_lengths, c10::IntArrayRef target_lengths,
                                    const at::Tensor& loss, const at::Tensor& log_alpha, int64_t blank,
                                    bool zero_infinity) {
  check_labels_on_engine(op::_ctc_loss_backward::name, log_probs, targets, target_lengths);
  return cpu::_ctc_loss_backward(grad, log_probs, targets, input_lengths, target_lengths, loss, log_alpha, blank,
                                 zero_infinity);
}

const auto kCtcLoss = unstructured_operator<meta_ctc_loss, op::_ctc_loss, SchemaOf<op::_ctc_loss>>(
    ctc_loss_kernel, {.refused = kBoolean | kIntegers | kReduced | kComplex});
const auto kCtcLossBackward =
    unstructured_operator<meta_ctc_loss_backward, op::_ctc_loss_backward, SchemaOf<op::_ctc_loss_backward>>(
        ctc_loss_backward_kernel, {.refused = kBoolean | kIntegers | kReduced | kComplex});

std::tuple<at::Tensor, at::Tensor> ctc_loss(const at::Tensor& log_probs, const at::Tensor& targets,
                                            c10::IntArrayRef input_lengths, c10::IntArrayRef target_lengths,
                                            int64_t blank, bool zero_infinity) {
  return kCtcLoss.functional(log_probs, targets.to(log_probs.device()), input_lengths, target_lengths, blank,
                             zero_infinity);
}

at::Tensor ctc_loss_backward(const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets,
                             c10::IntArrayRef input_lengths, c10::IntArrayRef target_lengths, const at::Tensor& loss,
                             const at::Tensor& log_alpha, int64_t blank, bool zero_infinity) {
  return kCtcLossBackward.functional(grad, log_probs, targets.to(log_probs.device()), input_lengths, target_lengths,
                                     loss, log_alpha, blank, zero_infinity);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::_ctc_loss>(library, ctc_loss, kCtcLoss.op.traits);
  function<op::_ctc_loss_Tensor>(library, at::native::ctc_loss_tensor);
  function<op::_ctc_loss_backward>(library, ctc_loss_backward);
  function<op::_ctc_loss_backward_Tensor>(library, at::native::ctc_loss_backward_tensor);
}

}  // namespace

}  // namespace openreg::ops
