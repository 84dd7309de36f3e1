// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/gil.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace openreg::runtime {

namespace {

std::atomic<const GilHooks*>& registered_hooks() {
  static std::atomic<const GilHooks*> hooks{nullptr};
  return hooks;
}

}  // namespace

void set_gil_hooks(const GilHooks& hooks) {
  registered_hooks() = new GilHooks(hooks);  // exists until the process ends
}

void park_if_finalized() {
  const GilHooks* hooks = registered_hooks().load();
  while (hooks != nullptr && hooks->interpreter_ended_elsewhere()) {
    std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

GilRelease::GilRelease() {
  const GilHooks* hooks = registered_hooks().load();
  token_ = hooks == nullptr ? nullptr : hooks->release();
}

GilRelease::~GilRelease() noexcept(false) {
  if (token_ != nullptr) {
    registered_hooks().load()->acquire(token_);
  }
}

}  // namespace openreg::runtime
