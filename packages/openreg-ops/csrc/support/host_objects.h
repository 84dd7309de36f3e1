// SPDX-License-Identifier: BSD-3-Clause
// Objects of the host that launches use: PyTorch's packed weights of quantised layers, which are torch.classes.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>

namespace openreg::ops {

// A launch holds one of these instead of the object. An object may hold tensors with Python objects, which an engine
// thread must not release; so the process holds every object too, until the host finds that nobody else does.
struct HostObject {
  c10::IValue value;
  uint64_t number;  // no other object of the process ever has it, whatever its address
};

// The object that an argument is (IValue::isCustomClass()). Thread-safe. With each new object, and now and then, those
// are released that are in use no more.
std::shared_ptr<const HostObject> hold_on_host(const c10::IValue& object);

}  // namespace openreg::ops
