// SPDX-License-Identifier: BSD-3-Clause
// Ownership of host objects that launches use: PyTorch's packed weights of quantized layers, which are objects of
// torch.classes (TorchBind).
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>

namespace openreg::ops {

// A host object that launches own through a shared pointer. An engine thread must not release the object, because it
// may hold tensors with Python objects. So a table of the process also owns every object, until a host thread finds
// that the table is its only owner.
struct HostObject {
  c10::IValue value;
  uint64_t number;  // unique in the process, also after the object's address is reused
};

// Returns the shared owner of `object`, for which IValue::isCustomClass() must be true. Also releases objects that only
// the table owns: in each call with a new object, and in every 64th of the other calls. Thread-safe.
std::shared_ptr<const HostObject> hold_on_host(const c10::IValue& object);

}  // namespace openreg::ops
