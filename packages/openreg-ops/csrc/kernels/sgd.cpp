// SPDX-License-Identifier: BSD-3-Clause
// A fused optimizer step: one launch for any number of parameters. The parameters are divided into chunks, which the
// threads process.
#include "kernels/sgd.h"

#include <algorithm>

#include "kernels/clones.h"
#include "kernels/parallel.h"

namespace openreg::ops::raw {

namespace {

constexpr int64_t kChunk = 16384;  // elements

// At most kChunk elements of one parameter, from `begin` on.
struct ParameterChunk {
  const SgdParameter* parameter;
  int64_t begin;
};

// The numbers of a step, in the type in which the step is computed.
template <class Number>
struct SgdStep {
  Number learning_rate;
  Number momentum;
  Number dampening;
  Number weight_decay;
  Number scale;
};

template <class Value, class Number>
OPENREG_CLONES void update(const SgdArguments& arguments, const SgdStep<Number>& step, const ParameterChunk& chunk) {
  auto* parameter = static_cast<Value*>(chunk.parameter->parameter);
  auto* gradient = static_cast<Value*>(chunk.parameter->gradient);
  auto* momentum = static_cast<Value*>(chunk.parameter->momentum);
  const int64_t end = std::min(chunk.parameter->count, chunk.begin + kChunk);
  for (int64_t i = chunk.begin; i < end; ++i) {
    auto value = static_cast<Number>(parameter[i]);
    auto slope = static_cast<Number>(gradient[i]);
    if (arguments.scale != nullptr) {
      slope /= step.scale;
      gradient[i] = static_cast<Value>(slope);
    }
    slope = arguments.maximize ? -slope : slope;
    if (step.weight_decay != 0) {
      slope += step.weight_decay * value;
    }
    if (momentum != nullptr) {
      const Number velocity = arguments.first_step
                                  ? slope
                                  : step.momentum * static_cast<Number>(momentum[i]) + (1 - step.dampening) * slope;
      momentum[i] = static_cast<Value>(velocity);
      slope = arguments.nesterov ? slope + step.momentum * velocity : velocity;
    }
    parameter[i] = static_cast<Value>(value - step.learning_rate * slope);
  }
}

}  // namespace

void sgd(const SgdArguments& arguments) {
  if (arguments.found_inf != nullptr && *arguments.found_inf == 1) {
    return;
  }
  std::vector<ParameterChunk> chunks;
  for (const SgdParameter& parameter : arguments.parameters) {
    for (int64_t begin = 0; begin < parameter.count; begin += kChunk) {
      chunks.push_back({&parameter, begin});
    }
  }
  visit(Floats(), arguments.type, [&](auto example) {
    using Number = Accumulator<decltype(example)>;
    const double learning_rate = arguments.learning_rate_address != nullptr
                                     ? static_cast<double>(*arguments.learning_rate_address)
                                     : arguments.learning_rate;
    const SgdStep<Number> step{static_cast<Number>(learning_rate), static_cast<Number>(arguments.momentum),
                               static_cast<Number>(arguments.dampening), static_cast<Number>(arguments.weight_decay),
                               arguments.scale != nullptr ? static_cast<Number>(*arguments.scale) : Number(1)};
    for_each_item(static_cast<int64_t>(chunks.size()), 2,
                  [&](int64_t i) { update<decltype(example)>(arguments, step, chunks[static_cast<size_t>(i)]); });
  });
}

}  // namespace openreg::ops::raw
