// SPDX-License-Identifier: BSD-3-Clause
#include "sanitizer.h"

#include <algorithm>
#include <string_view>

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

constexpr size_t kNodes = size_t{1} << 20;
constexpr size_t kRedZone = 256;  // bytes: more than a kernel's widest vector, less than the allocator's unit

// Returns the red zone that a task fills.
RedZone zone_of(const orTaskInfo& task) {
  const auto begin = reinterpret_cast<uintptr_t>(task.operands[0].address);
  return {begin, begin + task.operands[0].size, task.queue, task.ticket};
}

}  // namespace

Sanitizer& Sanitizer::instance() {
  static auto* const sanitizer = new Sanitizer;  // callbacks may come while the process exits
  return *sanitizer;
}

void Sanitizer::start(const ProcessSettings& settings) {
  runtime::ensure_initialized();  // throws in a forked child, which may have inherited the mutex locked
  const std::lock_guard<std::mutex> control(control_);
  std::vector<orStream_t> defaults;
  for (int device = 0; device < runtime::device_count(); ++device) {
    orStream_t stream = nullptr;
    OPENREG_CHECK(orDeviceGetDefaultStream(&stream, device));
    defaults.push_back(stream);
  }
  launches_block_ = settings.launches_block;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    known_.clear();  // what an earlier session has found is new to this one
    uses_.learn();
    ordering_ = Ordering();
    shadow_.clear();
    ordering_.set_default_streams(std::move(defaults));
  }
  orSubscriber table{};
  table.size = sizeof(table);
  table.version = OPENREG_SUBSCRIBER_VERSION;
  table.flags = orSubscribeOperands;
  table.submit = &on_submit;
  table.complete = &on_complete;
  table.sync = &on_sync;
  table.memory = &on_driver_memory;
  table.capture = &on_capture;
  OPENREG_CHECK(orSubscribe(&table, this, &subscription_));
  memory_subscription_ = runtime::observe_memory({[this](const runtime::MemoryEvent& event) { on_memory(event); }});
  orSetEnqueueHook(&take_launch_context);
  runtime::ToolHooks hooks;
  hooks.before_memory = &take_allocation_context;
  hooks.pinned = [](void* address, size_t size) { instance().on_pinned(address, size); };
  hooks.access = [](const char* name, c10::Stream stream, const runtime::Operands& operands) {
    instance().on_access(name, stream, operands);
  };
  hooks.red_zone = kRedZone;
  hooks.fills_red_zone = [](const void* address) { return instance().fills_red_zone(address); };
  runtime::set_tool_hooks(hooks);
  runtime::kernel_view(nullptr);  // computes the offset that on_complete() needs, which a callback must not
  is_active_ = true;
  if (settings.is_poisoned) {
    watch_poison();
  }
}

void Sanitizer::stop() {
  const std::lock_guard<std::mutex> control(control_);
  if (!is_active_.exchange(false)) {
    return;
  }
  stop_watching_host();
  stop_watching_poison();
  runtime::set_tool_hooks({});
  orSetEnqueueHook(nullptr);
  runtime::stop_observing_memory(memory_subscription_);
  const orError_t status = orUnsubscribe(subscription_);
  subscription_ = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    shadow_.clear();
    nodes_.clear();
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

void Sanitizer::renew() {
  const std::lock_guard<std::mutex> lock(mutex_);
  known_.clear();
}

void Sanitizer::add_existing(uintptr_t address, size_t size, int device, int64_t stream, bool is_private) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (shadow_.generation(address) == 0) {  // not allocated since start()
    shadow_.allocate({address, address + size, device, {device, stream}, 0, 0}, is_private, /*was_written=*/true);
  }
}

void Sanitizer::on_submit(void* user, const orTaskInfo* task, uint64_t* correlation) {
  auto& self = *static_cast<Sanitizer*>(user);
  std::unique_ptr<ZoneCheck> check = self.is_active() ? self.submit(*task) : nullptr;
  *correlation = reinterpret_cast<uintptr_t>(check.release());  // on_complete() owns it
}

void Sanitizer::on_complete(void* user, const orTaskCompletion* completion) {
  const std::unique_ptr<ZoneCheck> check(reinterpret_cast<ZoneCheck*>(static_cast<uintptr_t>(completion->correlation)));
  auto& self = *static_cast<Sanitizer*>(user);
  if (check != nullptr && completion->skipped == 0 && self.is_active()) {
    self.complete(*check);
  }
}

runtime::CallReason Sanitizer::reason_of(const orTaskInfo& task) const {
  const auto node = task.node == 0 ? nodes_.end() : nodes_.find(task.node);
  return node == nodes_.end() ? runtime::call_reason() : node->second.reason;
}

std::unique_ptr<Sanitizer::ZoneCheck> Sanitizer::submit(const orTaskInfo& task) {
  bool is_new = false;
  auto check = std::make_unique<ZoneCheck>();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const VectorClock& clock = ordering_.submitted(task);
    const bool accesses = task.kind == orTaskKernel || task.kind == orTaskCopy || task.kind == orTaskFill;
    // The fill with the poison pattern is no part of the program: its write must not make memory defined.
    const runtime::CallReason reason = reason_of(task);
    if (!accesses || reason == runtime::CallReason::kPoison) {
      return nullptr;
    }
    if (task.operands == nullptr) {
      shadow_.written_by_unknown(task.device);
      return nullptr;
    }
    if (reason == runtime::CallReason::kRedZone) {
      if (task.node == 0) {
        shadow_.set_red_zone(zone_of(task));
      }
      return nullptr;
    }
    const LaunchContext& context = launch_context();
    Site site;
    site.kind = task.kind;
    site.operation = sites_.name(task.name);
    site.stack = context.stack;
    std::vector<Conflict> conflicts;
    if (task.node == 0) {
      site.forward = context.forward;
      site.node = context.node.empty() ? nullptr : sites_.name(context.node.c_str());
    } else if (const auto node = nodes_.find(task.node); node != nodes_.end()) {
      site.captured = node->second.stack;
    }
    add_operands(task, site, clock, conflicts, *check);
    is_new = add(conflicts);
  }
  if (is_new) {
    request_report();
  }
  return check->zones.empty() ? nullptr : std::move(check);
}

void Sanitizer::complete(const ZoneCheck& check) {
  std::vector<Conflict> conflicts;
  bool is_new = false;
  const std::unique_lock<std::mutex> lock(mutex_);
  for (const ZoneCheck::Zone& zone : check.zones) {
    const RedZone now = shadow_.red_zone(zone.access.begin);
    if (!check.is_replay && (now.begin != zone.bytes.begin || now.ticket != zone.bytes.ticket)) {
      continue;  // the memory has another tensor already
    }
    auto* const begin = static_cast<uint8_t*>(runtime::kernel_view(reinterpret_cast<void*>(zone.bytes.begin)));
    auto* const end = begin + (zone.bytes.end - zone.bytes.begin);
    if (std::any_of(begin, end, [](uint8_t byte) { return byte != runtime::kRedZoneByte; })) {
      if (!check.is_replay) {
        std::fill(begin, end, static_cast<uint8_t>(runtime::kRedZoneByte));  // the next task is not to blame
      }
      conflicts.push_back({FindingKind::kOutOfBounds, {}, zone.life, zone.access, zone.life});
    }
  }
  is_new = add(conflicts);
  if (is_new) {
    request_report();  // takes no lock
  }
}

void Sanitizer::add_operands(const orTaskInfo& task, const Site& site, const VectorClock& clock,
                             std::vector<Conflict>& conflicts, ZoneCheck& check) {
  const uint32_t number = sites_.intern(site);
  const auto node = task.node == 0 ? nodes_.end() : nodes_.find(task.node);
  const bool is_copy_to_host = task.kind == orTaskCopy && task.operand_count == 2 &&
                               shadow_.life(reinterpret_cast<uintptr_t>(task.operands[0].address)).device < 0;
  if (task.node != 0 && node == nodes_.end()) {
    shadow_.written_by_unknown(task.device);  // captured before start(), so that its tensors are unknown
    return;
  }
  check.is_replay = task.node != 0;
  for (size_t i = 0; i < task.operand_count; ++i) {
    const orOperand& operand = task.operands[i];
    Access access;
    access.begin = reinterpret_cast<uintptr_t>(operand.address);
    access.end = access.begin + operand.size;
    access.ticket = task.ticket;
    access.queue = task.queue;
    access.layout = task.node == 0 && task.kind == orTaskKernel ? layout_of(operand, i) : 0;
    access.site = number;
    access.reads = (operand.access & orAccessRead) != 0;
    access.writes = (operand.access & orAccessWrite) != 0;
    bool is_replaced = false;
    if (node != nodes_.end() && i < node->second.generations.size()) {
      const auto [layout, generation] = node->second.generations[i];
      access.layout = static_cast<uint32_t>(layout);
      is_replaced = generation != 0 && generation != shadow_.generation(access.begin);
      if (is_replaced && conflicts.empty()) {
        const Life life = shadow_.life(access.begin);
        conflicts.push_back({FindingKind::kGraphInput, {}, life, access, life});
      }
    }
    // Without a layout, the range may have bytes between the elements that nothing has to write.
    const bool is_exact = task.kind != orTaskKernel || access.layout != 0;
    const bool checks =
        task.node == 0 && access.reads && is_exact &&
        (is_copy_to_host ? i == 1 : task.name != nullptr && uses_.uses_content(task.name, access.writes, i));
    const size_t before = conflicts.size();
    shadow_.access(access, clock, checks, task.node != 0, conflicts);
    RedZone zone;
    if (task.node == 0) {
      zone = shadow_.red_zone(access, clock);
    } else if (node != nodes_.end() && i < node->second.red_zones.size() && !is_replaced) {
      zone = node->second.red_zones[i];
    }
    if (zone.end != 0) {
      check.zones.push_back({zone, access, shadow_.life(access.begin)});
    }
    if (is_replaced) {
      conflicts.resize(std::min(conflicts.size(), before));  // consequences of the replaced memory
    }
  }
}

uint32_t Sanitizer::layout_of(const orOperand& operand, size_t index) {
  const std::vector<runtime::OperandLayout>& layouts = runtime::operand_layouts();
  const auto fits = [&](const runtime::OperandLayout& layout) {
    return layout.address == operand.address && layout.size == operand.size;
  };
  const runtime::OperandLayout* found = nullptr;
  if (index < layouts.size() && fits(layouts[index])) {
    found = &layouts[index];
  } else {
    const auto any = std::find_if(layouts.begin(), layouts.end(), fits);
    found = any == layouts.end() ? nullptr : &*any;
  }
  if (found == nullptr) {
    return 0;
  }
  return layouts_.intern(
      {found->dtype, {found->sizes.begin(), found->sizes.end()}, {found->strides.begin(), found->strides.end()}});
}

void Sanitizer::on_capture(void* user, const orTaskInfo* task) {
  auto& self = *static_cast<Sanitizer*>(user);
  if (!self.is_active()) {
    return;
  }
  const std::lock_guard<std::mutex> lock(self.mutex_);
  if (self.nodes_.size() >= kNodes) {
    self.nodes_.erase(self.nodes_.begin());
  }
  Node node{launch_context().stack, runtime::call_reason(), {}, {}};
  if (node.reason == runtime::CallReason::kRedZone) {
    self.shadow_.set_red_zone(zone_of(*task));
  }
  for (size_t i = 0; task->operands != nullptr && i < task->operand_count; ++i) {
    node.generations.emplace_back(self.layout_of(task->operands[i], i),
                                  self.shadow_.generation(reinterpret_cast<uintptr_t>(task->operands[i].address)));
    node.red_zones.push_back(self.shadow_.red_zone(reinterpret_cast<uintptr_t>(task->operands[i].address)));
  }
  self.nodes_[task->node] = std::move(node);
}

void Sanitizer::on_sync(void* user, const orSyncInfo* sync) {
  auto& self = *static_cast<Sanitizer*>(user);
  if (!self.is_active()) {
    return;
  }
  const runtime::CallReason reason = runtime::call_reason();
  if (reason == runtime::CallReason::kTool) {
    return;
  }
  const bool is_implicit = reason == runtime::CallReason::kAllocator ||
                           (sync->kind == orSyncStream && self.launches_block_ && reason != runtime::CallReason::kWait);
  const std::lock_guard<std::mutex> lock(self.mutex_);
  self.ordering_.synchronized(*sync, is_helper_thread(), is_implicit);
}

void Sanitizer::on_driver_memory(void* user, const orMemoryInfo* memory) {
  auto& self = *static_cast<Sanitizer*>(user);
  if (!self.is_active()) {
    return;
  }
  const auto begin = reinterpret_cast<uintptr_t>(memory->address);
  const std::lock_guard<std::mutex> lock(self.mutex_);
  if (memory->action == orMemoryAllocated || memory->action == orMemoryImported) {
    self.shadow_.add_region(begin, memory->size, memory->device);
  } else {
    self.shadow_.remove_region(begin);
  }
}

void Sanitizer::on_memory(const runtime::MemoryEvent& event) {
  if (!is_active()) {
    return;
  }
  const auto address = reinterpret_cast<uintptr_t>(event.address);
  const std::lock_guard<std::mutex> lock(mutex_);
  switch (event.kind) {
    case runtime::MemoryEventKind::kAllocated: {
      const bool is_private = event.pool.first != 0 || event.pool.second != 0;
      shadow_.allocate(
          {address, address + event.size, event.device, {event.device, event.stream}, launch_context().allocation, 0},
          is_private, /*was_written=*/is_private);
      return;
    }
    case runtime::MemoryEventKind::kStreamRecorded:
      shadow_.record_stream(address, {event.other_device, event.other_stream});
      return;
    case runtime::MemoryEventKind::kFreeRequested: {
      std::vector<Conflict> conflicts;
      shadow_.free(address, launch_context().allocation, conflicts);
      for (Conflict& conflict : conflicts) {
        Site site;
        site.on_host = true;
        site.operation = sites_.name("free");
        site.stack = launch_context().allocation;
        conflict.second = {conflict.second_life.begin, conflict.second_life.end};
        conflict.second.site = sites_.intern(site);
        conflict.second.writes = true;
      }
      add(conflicts);  // warnings, which are reported when the session ends
      return;
    }
    case runtime::MemoryEventKind::kSegmentReleased:
      shadow_.remove_region(address);
      return;
    case runtime::MemoryEventKind::kFreeCompleted:
    case runtime::MemoryEventKind::kSegmentAllocated:
    case runtime::MemoryEventKind::kOutOfMemory:
      return;
  }
}

void Sanitizer::on_access(const char* name, c10::Stream stream, const runtime::Operands& operands) {
  bool is_new = false;
  if (is_active()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const int64_t queue = ordering_.find({stream.device_index(), stream.id()});
    if (queue < 0) {
      return;  // nothing has been enqueued there
    }
    Site site;
    site.operation = sites_.name(name);
    site.stack = launch_context().stack;
    Access access;
    access.queue = static_cast<uint32_t>(queue);
    access.ticket = ordering_.newest(access.queue);
    access.site = sites_.intern(site);
    const VectorClock clock = ordering_.next(access.queue);
    std::vector<Conflict> conflicts;
    for (size_t i = 0; i < operands.size(); ++i) {
      const orOperand& operand = operands.data()[i];
      access.begin = reinterpret_cast<uintptr_t>(operand.address);
      access.end = access.begin + operand.size;
      access.layout = layout_of(operand, i);
      access.reads = (operand.access & orAccessRead) != 0;
      access.writes = (operand.access & orAccessWrite) != 0;
      shadow_.access(access, clock, /*checks_content=*/false, /*is_replay=*/false, conflicts);
    }
    is_new = add(conflicts);
  }
  if (is_new) {
    request_report();
  }
}

void Sanitizer::on_pinned(void* address, size_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  if (!is_active() || begin == 0) {
    return;
  }
  const uint32_t stack = size == 0 ? 0 : StackTable::instance().gather();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (size == 0) {
      const Life life = shadow_.life(begin);
      shadow_.allocate({begin, life.end > begin ? life.end : begin + 1, -1, {}, 0, 0}, true, true);
      return;
    }
    shadow_.allocate({begin, begin + size, -1, {}, stack, 0}, true, true);
    pinned_begin_ = std::min(pinned_begin_.load(), begin);
    pinned_end_ = std::max(pinned_end_.load(), begin + size);
  }
  watch_host();
}

bool Sanitizer::host_access(const char* operation, const void* begin, size_t size, const Layout& layout, bool writes) {
  if (!is_active()) {
    return false;
  }
  const auto check = [&](uint32_t stack, bool adds) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Access access;
    access.begin = reinterpret_cast<uintptr_t>(begin);
    access.end = access.begin + size;
    access.layout = layouts_.intern(layout);
    access.reads = !writes;
    access.writes = writes;
    std::vector<Conflict> conflicts;
    if (adds) {
      Site site;
      site.on_host = true;
      site.operation = sites_.name(operation);
      site.stack = stack;
      access.site = sites_.intern(site);
    }
    shadow_.host_access(access, conflicts);
    const bool found = !conflicts.empty();
    return adds ? add(conflicts) : found;
  };
  // The first pass needs no stack, for which the GIL has to be taken.
  if (!check(0, false)) {
    return true;
  }
  if (check(StackTable::instance().gather(), true)) {
    request_report();
  }
  return false;
}

bool Sanitizer::fills_red_zone(const void* address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return is_active() && shadow_.is_unused(reinterpret_cast<uintptr_t>(address));
}

void Sanitizer::poison_on_host(const char* operation, const void* begin, size_t size, const Layout& layout) {
  const uint32_t stack = StackTable::instance().gather();
  bool is_new = false;
  if (is_active()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Site site;
    site.on_host = true;
    site.operation = sites_.name(operation);
    site.stack = stack;
    Access access;
    access.begin = reinterpret_cast<uintptr_t>(begin);
    access.end = access.begin + size;
    access.layout = layouts_.intern(layout);
    access.site = sites_.intern(site);
    access.reads = true;
    std::vector<Conflict> conflicts{{FindingKind::kPoison, {}, {}, access, {}}};
    is_new = add(conflicts);
  }
  if (is_new) {
    request_report();
  }
}

bool Sanitizer::add(std::vector<Conflict>& conflicts) {
  bool is_new = false;
  for (Conflict& conflict : conflicts) {
    const auto key = std::make_tuple(conflict.kind, conflict.first.site, conflict.second.site);
    const auto found = known_.find(key);
    if (found != known_.end()) {
      ++findings_[found->second].count;
    } else if (findings_.size() < kFindings) {
      known_.emplace(key, findings_.size());
      const Site& second = sites_.site(conflict.second.site);
      findings_.push_back({conflict, ordering_.name(conflict.first.queue),
                           second.on_host ? StreamName() : ordering_.name(conflict.second.queue), 1});
      is_new = true;
    }
  }
  return is_new;
}

std::vector<Finding> Sanitizer::findings(size_t begin) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (begin >= findings_.size()) {
    return {};
  }
  return {findings_.begin() + static_cast<ptrdiff_t>(begin), findings_.end()};
}

size_t Sanitizer::finding_count() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return findings_.size();
}

std::vector<uint64_t> Sanitizer::counts() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<uint64_t> counts;
  counts.reserve(findings_.size());
  for (const Finding& finding : findings_) {
    counts.push_back(finding.count);
  }
  return counts;
}

Site Sanitizer::site(uint32_t number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return sites_.site(number);
}

Layout Sanitizer::layout(uint32_t number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return layouts_.layout(number);
}

size_t Sanitizer::shadow_size() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return shadow_.size();
}

}  // namespace openreg::sanitizer
