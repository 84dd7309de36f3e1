// SPDX-License-Identifier: BSD-3-Clause
#include "operator_uses.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include "operator_names.h"

namespace openreg::sanitizer {

namespace {

// Operators with the tag `pointwise` that only select or move elements.
constexpr OperatorNameArray<8> kMoves = {"aten::_copy_from",     "aten::copy_",       "aten::clone",
                                         "aten::where",          "aten::masked_fill", "aten::masked_fill_",
                                         "aten::_foreach_copy_", "aten::nan_to_num"};
// Operators without the tag that compute with all elements. The list has the common ones and is not complete.
constexpr OperatorNameArray<24> kOthers = {"aten::sum",
                                           "aten::mean",
                                           "aten::prod",
                                           "aten::max",
                                           "aten::min",
                                           "aten::amax",
                                           "aten::amin",
                                           "aten::argmax",
                                           "aten::argmin",
                                           "aten::var",
                                           "aten::std",
                                           "aten::linalg_vector_norm",
                                           "aten::mm",
                                           "aten::bmm",
                                           "aten::mv",
                                           "aten::dot",
                                           "aten::addmm",
                                           "aten::linear",
                                           "aten::cumsum",
                                           "aten::_softmax",
                                           "aten::_log_softmax",
                                           "aten::convolution_overrideable",
                                           "aten::native_layer_norm",
                                           "aten::mse_loss"};
// Products whose first operand is unused if their argument `beta` is 0.
constexpr OperatorNameArray<6> kProducts = {"aten::addmm",  "aten::addmv", "aten::baddbmm",
                                            "aten::addbmm", "aten::addr",  "aten::addmm_"};

}  // namespace

void OperatorUses::learn() {
  if (!pointwise_.empty()) {
    return;
  }
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto found = dispatcher.findSchema(name);
    if (found.has_value() && found->hasTag(at::Tag::pointwise) && !contains(kMoves, name.name)) {
      pointwise_.insert(name.name);
    }
  }
}

bool OperatorUses::uses_content(std::string_view name, bool is_updated, size_t index) const {
  const std::string plain(name.substr(0, name.find('.')));  // without the overload
  const bool is_in_place = plain.ends_with('_');
  if (index == 0 && contains(kProducts, plain)) {
    return false;
  }
  return (!is_updated || is_in_place) && (pointwise_.contains(plain) || contains(kOthers, plain));
}

}  // namespace openreg::sanitizer
