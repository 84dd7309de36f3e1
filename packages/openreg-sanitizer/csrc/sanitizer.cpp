// SPDX-License-Identifier: BSD-3-Clause
#include "sanitizer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "host_access.h"
#include "launch_context.h"
#include "openreg/runtime/capture.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/launch.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/stream.h"
#include "openreg/runtime/tool_hooks.h"
#include "poison_check.h"
#include "stacks.h"

namespace openreg::sanitizer {

namespace {

constexpr size_t kRedZone = 256;  // bytes: more than a kernel's widest vector, less than the allocator's unit

std::vector<orStream_t> default_streams() {
  std::vector<orStream_t> streams;
  for (int device = 0; device < runtime::device_count(); ++device) {
    orStream_t stream = nullptr;
    OPENREG_CHECK(orDeviceGetDefaultStream(&stream, device));
    streams.push_back(stream);
  }
  return streams;
}

}  // namespace

Sanitizer& Sanitizer::instance() {
  static auto* const sanitizer = new Sanitizer;  // never destroyed: callbacks may come while the process exits
  return *sanitizer;
}

Sanitizer::LockedChecker::~LockedChecker() {
  const bool has_news = checker_.findings().take_news();
  lock_.unlock();
  if (has_news) {
    request_report();
  }
}

void Sanitizer::start(const ProcessSettings& settings) {
  runtime::ensure_initialized();  // throws in a forked child, which may have inherited the mutex locked
  const std::lock_guard<std::mutex> control(control_);
  std::vector<orStream_t> streams = default_streams();
  launches_block_ = settings.launches_block;
  lock()->start(std::move(streams));
  StackTable::instance().open();
  subscribe();
  set_hooks();
  runtime::kernel_view(nullptr);  // computes the offset that on_complete() needs, which a callback must not
  is_active_ = true;
  if (settings.is_poisoned) {
    poison_watch().start();
  }
}

void Sanitizer::subscribe() {
  orSubscriber table{};
  table.size = sizeof(table);
  table.version = OPENREG_SUBSCRIBER_VERSION;
  table.flags = orSubscribeOperands;
  table.submit = &on_submit;
  table.complete = &on_complete;
  table.sync = &on_sync;
  table.memory = &on_region;
  table.capture = &on_capture;
  OPENREG_CHECK(orSubscribe(&table, this, &subscription_));
  memory_subscription_ =
      runtime::observe_memory({[this](const runtime::MemoryEvent& event) { on_allocator_event(event); }});
}

void Sanitizer::set_hooks() {
  orSetEnqueueHook(&take_launch_context);
  runtime::ToolHooks hooks;
  hooks.before_memory = &take_allocation_context;
  hooks.pinned = [](void* address, size_t size) { instance().on_pinned(address, size); };
  hooks.access = [](const char* name, c10::Stream stream, const runtime::Operands& operands) {
    instance().on_transfer(name, stream, operands);
  };
  hooks.red_zone = kRedZone;
  hooks.fills_red_zone = [](const void* address) { return instance().may_fill_red_zone(address); };
  runtime::set_tool_hooks(hooks);
}

void Sanitizer::stop() {
  const std::lock_guard<std::mutex> control(control_);
  if (!is_active_.exchange(false)) {
    return;
  }
  host_access_watch().stop();
  poison_watch().stop();
  runtime::set_tool_hooks({});
  orSetEnqueueHook(nullptr);
  runtime::stop_observing_memory(memory_subscription_);
  const orError_t status = orUnsubscribe(subscription_);
  subscription_ = nullptr;
  {
    LockedChecker checker = lock();
    checker->stop();
    pinned_begin_ = UINTPTR_MAX;
    pinned_end_ = 0;
  }
  OPENREG_CHECK(status);
}

void Sanitizer::settle() {
  const runtime::CallReasonGuard reason(runtime::CallReason::kTool);
  for (c10::DeviceIndex device = 0; is_active() && device < runtime::device_count(); ++device) {
    try {
      if (!runtime::is_capturing(runtime::current_stream(device))) {  // a capture would become invalid
        runtime::synchronize_device(device);
      }
    } catch (const c10::Error&) {
      // The device has failed, so none of its tasks is left. The program's next call throws the same error.
    }
  }
}

void Sanitizer::abandon() noexcept {
  is_active_ = false;
  StackTable::instance().close();
}

void Sanitizer::add_existing(uintptr_t address, size_t size, int device, int64_t stream, bool is_private) {
  lock()->add_existing({address, address + size, device, {device, stream}, 0, 0}, is_private);
}

// The correlation of a task is a pointer to its red zones, which on_complete() owns, or null.
void Sanitizer::on_submit(void* user, const orTaskInfo* task, uint64_t* correlation) {
  auto& self = *static_cast<Sanitizer*>(user);
  std::unique_ptr<std::vector<WatchedZone>> zones;
  if (self.is_active()) {
    std::vector<WatchedZone> watched = self.lock()->submit(*task);
    if (!watched.empty()) {
      zones = std::make_unique<std::vector<WatchedZone>>(std::move(watched));
    }
  }
  *correlation = reinterpret_cast<uintptr_t>(zones.release());
}

void Sanitizer::on_complete(void* user, const orTaskCompletion* completion) {
  auto& self = *static_cast<Sanitizer*>(user);
  const std::unique_ptr<std::vector<WatchedZone>> zones(
      reinterpret_cast<std::vector<WatchedZone>*>(static_cast<uintptr_t>(completion->correlation)));
  if (zones != nullptr && completion->skipped == 0 && self.is_active()) {
    self.lock()->complete(*zones);
  }
}

void Sanitizer::on_capture(void* user, const orTaskInfo* task) {
  auto& self = *static_cast<Sanitizer*>(user);
  if (self.is_active()) {
    self.lock()->capture(*task);
  }
}

void Sanitizer::on_sync(void* user, const orSyncInfo* sync) {
  auto& self = *static_cast<Sanitizer*>(user);
  const runtime::CallReason reason = runtime::call_reason();
  if (!self.is_active() || reason == runtime::CallReason::kTool) {
    return;
  }
  const bool is_blocking_launch =
      sync->kind == orSyncStream && self.launches_block_ && reason != runtime::CallReason::kWait;
  const bool is_implicit = reason == runtime::CallReason::kAllocator || is_blocking_launch;
  const bool is_helper = is_helper_thread();
  self.lock()->synchronize(*sync, is_helper, is_implicit);
}

void Sanitizer::on_region(void* user, const orMemoryInfo* memory) {
  auto& self = *static_cast<Sanitizer*>(user);
  if (self.is_active()) {
    self.lock()->region_event(*memory);
  }
}

void Sanitizer::on_allocator_event(const runtime::MemoryEvent& event) {
  if (is_active()) {
    lock()->allocator_event(event);
  }
}

void Sanitizer::on_pinned(void* address, size_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  if (!is_active() || begin == 0) {
    return;
  }
  if (size == 0) {
    lock()->release_pinned(begin);
    return;
  }
  const uint32_t stack = StackTable::instance().gather();
  {
    LockedChecker checker = lock();
    checker->allocate_pinned(begin, size, stack);
    pinned_begin_ = std::min(pinned_begin_.load(), begin);
    pinned_end_ = std::max(pinned_end_.load(), begin + size);
  }
  host_access_watch().start();
}

void Sanitizer::on_transfer(const char* name, c10::Stream stream, const runtime::Operands& operands) {
  if (is_active()) {
    lock()->check_transfer(name, stream, operands);
  }
}

bool Sanitizer::may_fill_red_zone(const void* address) {
  return is_active() && lock()->may_fill_red_zone(reinterpret_cast<uintptr_t>(address));
}

bool Sanitizer::host_access(const char* operation, const HostTensor& tensor, bool writes) {
  if (!is_active()) {
    return false;
  }
  if (lock()->is_host_ordered(tensor, writes)) {
    return true;
  }
  const uint32_t stack = StackTable::instance().gather();
  lock()->check_host_access(operation, tensor, writes, stack);
  return false;
}

void Sanitizer::poison_on_host(const char* operation, const HostTensor& tensor) {
  const uint32_t stack = StackTable::instance().gather();
  if (is_active()) {
    lock()->report_poison(operation, tensor, stack);
  }
}

void Sanitizer::renew() {
  lock()->findings().renew();
}

std::vector<Finding> Sanitizer::findings(size_t begin) {
  return lock()->findings().from(begin);
}

size_t Sanitizer::finding_count() {
  return lock()->findings().size();
}

std::vector<uint64_t> Sanitizer::counts() {
  return lock()->findings().counts();
}

Site Sanitizer::site(uint32_t number) {
  return lock()->site(number);
}

TensorLayout Sanitizer::layout(uint32_t number) {
  return lock()->layout(number);
}

size_t Sanitizer::shadow_size() {
  return lock()->shadow_size();
}

}  // namespace openreg::sanitizer
