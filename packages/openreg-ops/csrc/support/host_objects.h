// SPDX-License-Identifier: BSD-3-Clause
// Ownership of host objects that launches use: PyTorch's packed weights of quantized layers, which are torch.classes.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>

namespace openreg::ops {

// A host object that launches own through a shared pointer. An engine thread must not release the object, because it
// may hold tensors with Python objects. So the process also owns every object, until a host thread finds that no other
// owner is left.
struct HostObject {
  c10::IValue value;
  uint64_t number;  // unique in the process, also after the object's address is reused
};

// Returns the owner of the object in an argument for which IValue::isCustomClass() is true. Each call with a new
// object, and every 64th call otherwise, also releases objects that are no longer in use. Thread-safe.
std::shared_ptr<const HostObject> hold_on_host(const c10::IValue& object);

}  // namespace openreg::ops
