// SPDX-License-Identifier: BSD-3-Clause
#include "registration/registry.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace openreg::ops {

namespace {

constexpr std::array<c10::DispatchKey, 6> kOfDevice = {
    c10::DispatchKey::PrivateUse1,          c10::DispatchKey::AutogradPrivateUse1,
    c10::DispatchKey::QuantizedPrivateUse1, c10::DispatchKey::SparsePrivateUse1,
    c10::DispatchKey::SparseCsrPrivateUse1, c10::DispatchKey::NestedTensorPrivateUse1};
constexpr std::array<std::string_view, 5> kLibraries = {"aten", "openreg", "quantized", "_quantized", "sparse"};
constexpr const char* kAten = "aten::";
constexpr const char* kUnknown = ", which PyTorch does not have; name the operator as native_functions.yaml does";

// What has been declared while the module was loaded, by one thread.
struct Declared {
  std::map<std::string, KernelRule> rules;
  std::string mistake;                                          // the first one
  std::string key;                                              // of DeclaresFor: "@SparsePrivateUse1"
  std::string library = kAten;                                  // of DeclaresFor: "quantized::"
  std::unordered_multimap<std::string, std::string> overloads;  // of all operators of PyTorch, by name

  Declared() {
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
      overloads.emplace(name.name, name.overload_name);
    }
  }
};

Declared& declared() {
  static auto* const everything = new Declared;
  return *everything;
}

template <class... Words>
void note_mistake(const Words&... words) {
  if (declared().mistake.empty()) {
    declared().mistake = c10::str("openreg_ops declares ", words...);
  }
}

bool is_out_form(const std::vector<c10::Argument>& arguments, const std::vector<c10::Argument>& functional) {
  const auto is_same = [](const c10::Argument& one, const c10::Argument& other) {
    return one.name() == other.name() && *one.type() == *other.type();
  };
  // What follows is outputs alone: max.dim_max takes what max() takes, too.
  const auto is_out = [](const c10::Argument& argument) { return argument.is_out(); };
  return arguments.size() > functional.size() &&
         std::equal(functional.begin(), functional.end(), arguments.begin(), is_same) &&
         std::all_of(arguments.begin() + static_cast<std::ptrdiff_t>(functional.size()), arguments.end(), is_out);
}

// PyTorch's own macros take a kernel for any name, as the operator may be defined later. Those of these libraries are
// all defined by now.
void note_kernels_without_operator() {
  for (const c10::OperatorHandle& op : c10::Dispatcher::singleton().findDanglingImpls()) {
    const c10::OperatorName& name = op.operator_name();
    const bool is_ours = std::any_of(kOfDevice.begin(), kOfDevice.end(),
                                     [&](c10::DispatchKey key) { return op.hasKernelForDispatchKey(key); });
    const auto library = name.getNamespace();
    if (is_ours && library.has_value() &&
        std::find(kLibraries.begin(), kLibraries.end(), *library) != kLibraries.end()) {
      note_mistake(name, kUnknown);
    }
  }
}

// The name of a form among the declarations.
std::string declared_name(const c10::OperatorName& form) {
  const std::string name = c10::toString(form);
  return (name.rfind(kAten, 0) == 0 ? name.substr(std::string_view(kAten).size()) : name) + declared().key;
}

}  // namespace

DeclaresFor::DeclaresFor(c10::DispatchKey key, const char* library) {
  declared().key = key == c10::DispatchKey::PrivateUse1 ? "" : c10::str("@", key);
  declared().library = c10::str(library, "::");
}

DeclaresFor::~DeclaresFor() {
  declared().key.clear();
  declared().library = kAten;
}

void register_form(torch::Library& library, const c10::OperatorName& form, const KernelRule& rule,
                   torch::CppFunction&& function) {
  if (!c10::Dispatcher::singleton().findSchema(form).has_value()) {
    note_mistake(form, kUnknown);
  } else if (!declared().rules.emplace(declared_name(form), rule).second) {
    note_mistake(form, " twice; an operator has one declaration, in the file of its family");
  } else {
    library.impl(c10::toString(form).c_str(), std::move(function));
  }
}

void register_boxed(torch::Library& library, const char* name, torch::CppFunction&& function) {
  const c10::OperatorNameView parsed = c10::OperatorNameView::parse(name);
  const c10::OperatorName form(declared().library + std::string(parsed.name), std::string(parsed.overload_name));
  register_form(library, form, {}, std::move(function));
}

void register_out_form(torch::Library& library, const c10::OperatorName& functional, const KernelRule& rule,
                       torch::CppFunction&& function) {
  auto& dispatcher = c10::Dispatcher::singleton();
  const auto found = dispatcher.findSchema(functional);
  const auto [first, last] = declared().overloads.equal_range(functional.name);
  for (auto overload = first; found.has_value() && overload != last; ++overload) {
    const c10::OperatorName name(functional.name, overload->second);
    if (is_out_form(dispatcher.findSchema(name)->schema().arguments(), found->schema().arguments())) {
      register_form(library, name, rule, std::move(function));
      return;
    }
  }
  note_mistake("the out= form of ", functional, ", which PyTorch does not have");
}

void require_sound_declarations() {
  note_kernels_without_operator();
  declared().overloads.clear();  // nothing is declared any more
  TORCH_CHECK(declared().mistake.empty(), declared().mistake);
}

const std::map<std::string, KernelRule>& declared_rules() {
  return declared().rules;
}

}  // namespace openreg::ops
