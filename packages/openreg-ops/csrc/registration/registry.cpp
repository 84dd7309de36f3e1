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

// The registrations that one thread makes while the module loads.
struct RegistrationLog {
  std::map<std::string, KernelTraits> traits;
  std::string mistake;                                          // the first one
  std::string key;                                              // of RegistrationKeyGuard: "@SparsePrivateUse1"
  std::string library = kAten;                                  // of RegistrationKeyGuard: "quantized::"
  std::unordered_multimap<std::string, std::string> overloads;  // of all operators of PyTorch, by name

  RegistrationLog() {
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
      overloads.emplace(name.name, name.overload_name);
    }
  }
};

RegistrationLog& registration_log() {
  static auto* const everything = new RegistrationLog;
  return *everything;
}

// Stores the text of the first mistake, for check_registrations().
template <class... Words>
void note_mistake(const Words&... words) {
  if (registration_log().mistake.empty()) {
    registration_log().mistake = c10::str("openreg_ops declares ", words...);
  }
}

// Returns true if an overload takes the arguments of the functional one and then outputs.
bool is_out_overload(const std::vector<c10::Argument>& arguments, const std::vector<c10::Argument>& functional) {
  const auto is_same = [](const c10::Argument& one, const c10::Argument& other) {
    return one.name() == other.name() && *one.type() == *other.type();
  };
  // Only outputs may follow, because max.dim_max begins with the arguments of max(), too.
  const auto is_out = [](const c10::Argument& argument) { return argument.is_out(); };
  return arguments.size() > functional.size() &&
         std::equal(functional.begin(), functional.end(), arguments.begin(), is_same) &&
         std::all_of(arguments.begin() + static_cast<std::ptrdiff_t>(functional.size()), arguments.end(), is_out);
}

// Reports kernels for names that no operator has. PyTorch's own macros accept them, because the operator may be defined
// later, but all operators of these libraries are defined by now.
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

// Returns the key of an overload in `RegistrationLog::traits`, as registered_traits() describes it.
std::string declared_name(const c10::OperatorName& overload) {
  const std::string name = c10::toString(overload);
  return (name.rfind(kAten, 0) == 0 ? name.substr(std::string_view(kAten).size()) : name) + registration_log().key;
}

}  // namespace

RegistrationKeyGuard::RegistrationKeyGuard(c10::DispatchKey key, const char* library) {
  registration_log().key = key == c10::DispatchKey::PrivateUse1 ? "" : c10::str("@", key);
  registration_log().library = c10::str(library, "::");
}

RegistrationKeyGuard::~RegistrationKeyGuard() {
  registration_log().key.clear();
  registration_log().library = kAten;
}

void register_overload(torch::Library& library, const c10::OperatorName& overload, const KernelTraits& traits,
                       torch::CppFunction&& function) {
  if (!c10::Dispatcher::singleton().findSchema(overload).has_value()) {
    note_mistake(overload, kUnknown);
  } else if (!registration_log().traits.emplace(declared_name(overload), traits).second) {
    note_mistake(overload, " twice; an operator has one declaration, in the file of its family");
  } else {
    library.impl(c10::toString(overload).c_str(), std::move(function));
  }
}

void register_boxed(torch::Library& library, const char* name, torch::CppFunction&& function) {
  const c10::OperatorNameView parsed = c10::OperatorNameView::parse(name);
  const c10::OperatorName overload(registration_log().library + std::string(parsed.name),
                                   std::string(parsed.overload_name));
  register_overload(library, overload, {}, std::move(function));
}

void register_out_overload(torch::Library& library, const c10::OperatorName& functional, const KernelTraits& traits,
                           torch::CppFunction&& function) {
  auto& dispatcher = c10::Dispatcher::singleton();
  const auto found = dispatcher.findSchema(functional);
  const auto [first, last] = registration_log().overloads.equal_range(functional.name);
  for (auto overload = first; found.has_value() && overload != last; ++overload) {
    const c10::OperatorName name(functional.name, overload->second);
    if (is_out_overload(dispatcher.findSchema(name)->schema().arguments(), found->schema().arguments())) {
      register_overload(library, name, traits, std::move(function));
      return;
    }
  }
  note_mistake("the out= form of ", functional, ", which PyTorch does not have");
}

void check_registrations() {
  note_kernels_without_operator();
  registration_log().overloads.clear();  // no registration follows
  TORCH_CHECK(registration_log().mistake.empty(), registration_log().mistake);
}

const std::map<std::string, KernelTraits>& registered_traits() {
  return registration_log().traits;
}

}  // namespace openreg::ops
