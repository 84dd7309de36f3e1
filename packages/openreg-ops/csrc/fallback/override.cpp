// SPDX-License-Identifier: BSD-3-Clause
#include "fallback/override.h"

#include "fallback/fallback.h"
#include "support/null_warning_handler.h"

namespace openreg::ops {

namespace {

c10::OperatorName parse_name(const std::string& text) {
  const size_t dot = text.find('.');
  c10::OperatorName name(text.substr(0, dot), dot == std::string::npos ? "" : text.substr(dot + 1));
  TORCH_CHECK_VALUE(c10::Dispatcher::singleton().findSchema(name).has_value(),
                    "fallback_operators: there is no operator '", text,
                    "'; give names as in torch.openreg.fallback_stats(), like 'aten::histc' or 'aten::histc.out'");
  return name;
}

}  // namespace

FallbackOverride::FallbackOverride(const std::vector<std::string>& operators) {
  NullWarningHandler silence;  // PyTorch warns of a replaced kernel, and to replace it is the purpose here
  const c10::WarningUtils::WarningHandlerGuard guard(&silence);
  for (const std::string& text : operators) {
    registrations_.push_back(c10::Dispatcher::singleton().registerImpl(
        parse_name(text), c10::DispatchKey::PrivateUse1, c10::KernelFunction::makeFromBoxedFunction<&run_fallback>(),
        std::nullopt, nullptr, "openreg: fallback"));
  }
}

void FallbackOverride::release() {
  registrations_.clear();
}

}  // namespace openreg::ops
