// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/serialization.h"

#include <torch/csrc/jit/serialization/pickler_helper.h>

#include <string>
#include <unordered_map>

#include "openreg/runtime/device.h"

namespace openreg::runtime {

namespace {

// In files; a reader without this backend ignores it.
constexpr const char* kResidentKey = "openreg_resident";

// Never changed once it is attached, because tensors share it (detach()).
struct TensorHints final : c10::BackendMeta {
  explicit TensorHints(bool is_resident) : resident(is_resident) {}
  const bool resident;
};

using Metadata = std::unordered_map<std::string, bool>;

void save(const at::Tensor& tensor, Metadata& metadata) {
  if (is_resident(tensor)) {
    metadata[kResidentKey] = true;
  }
}

void load(const at::Tensor& tensor, Metadata& metadata) {
  const auto found = metadata.find(kResidentKey);
  if (found != metadata.end()) {
    set_resident(tensor, found->second);
  }
}

[[maybe_unused]] const bool registered = [] {
  torch::jit::TensorBackendMetaRegistry(kDeviceType, &save, &load);
  return true;
}();

}  // namespace

void set_resident(const at::Tensor& tensor, bool resident) {
  TORCH_CHECK(tensor.device().type() == kDeviceType, "set_resident: the tensor is on ", tensor.device(),
              ", and only tensors on an openreg device have this hint; move it with .to('openreg')");
  tensor.unsafeGetTensorImpl()->set_backend_meta(c10::make_intrusive<TensorHints>(resident));
}

bool is_resident(const at::Tensor& tensor) {
  if (tensor.device().type() != kDeviceType) {
    return false;
  }
  const auto* hints = dynamic_cast<const TensorHints*>(tensor.unsafeGetTensorImpl()->get_backend_meta());
  return hints != nullptr && hints->resident;
}

}  // namespace openreg::runtime
