// SPDX-License-Identifier: BSD-3-Clause
#include "base/serialization.h"

#include <torch/csrc/jit/serialization/pickler_helper.h>

#include <string>
#include <unordered_map>
#include <utility>

#include "openreg/runtime/device.h"

namespace openreg::runtime {

namespace {

// The name of the hint in files. A reader without this backend ignores it.
constexpr const char* kResidentKey = "openreg_resident";

using Metadata = std::unordered_map<std::string, bool>;

// All named booleans of a tensor, including those that programs set with torch._utils.set_tensor_metadata. Immutable,
// because detach() makes tensors that share it.
struct TensorMetadata final : c10::BackendMeta {
  explicit TensorMetadata(Metadata all) : entries(std::move(all)) {}
  const Metadata entries;
};

Metadata metadata_of(const at::Tensor& tensor) {
  const auto* attached = dynamic_cast<const TensorMetadata*>(tensor.unsafeGetTensorImpl()->get_backend_meta());
  return attached != nullptr ? attached->entries : Metadata();
}

void attach(const at::Tensor& tensor, Metadata metadata) {
  tensor.unsafeGetTensorImpl()->set_backend_meta(c10::make_intrusive<TensorMetadata>(std::move(metadata)));
}

// Adds the tensor's entries to `metadata`. PyTorch has added its own names (the lazy bits), which it removes again
// before it calls load().
void save(const at::Tensor& tensor, Metadata& metadata) {
  const Metadata entries = metadata_of(tensor);
  metadata.insert(entries.begin(), entries.end());
}

void load(const at::Tensor& tensor, Metadata& metadata) {
  attach(tensor, metadata);
}

[[maybe_unused]] const bool serialization_is_registered = [] {
  torch::jit::TensorBackendMetaRegistry(kDeviceType, &save, &load);
  return true;
}();

}  // namespace

void set_resident(const at::Tensor& tensor, bool resident) {
  TORCH_CHECK(tensor.device().type() == kDeviceType,
              "set_resident: expected a tensor on an openreg device, but got one on ", tensor.device(),
              "; move it with .to('openreg')");
  Metadata metadata = metadata_of(tensor);
  if (resident) {
    metadata[kResidentKey] = true;
  } else {
    metadata.erase(kResidentKey);
  }
  attach(tensor, std::move(metadata));
}

bool is_resident(const at::Tensor& tensor) {
  if (tensor.device().type() != kDeviceType) {
    return false;
  }
  const Metadata metadata = metadata_of(tensor);
  const auto found = metadata.find(kResidentKey);
  return found != metadata.end() && found->second;
}

}  // namespace openreg::runtime
