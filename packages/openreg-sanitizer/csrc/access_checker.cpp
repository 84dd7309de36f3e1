// SPDX-License-Identifier: BSD-3-Clause
#include "access_checker.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "launch_context.h"
#include "openreg/runtime/launch.h"

namespace openreg::sanitizer {

namespace {

constexpr size_t kMaxCapturedTasks = size_t{1} << 20;

uintptr_t address_of(const orOperand& operand) {
  return reinterpret_cast<uintptr_t>(operand.address);
}

Access access_of(const orOperand& operand, const TaskId& task, uint32_t layout, uint32_t site) {
  Access access;
  access.begin = address_of(operand);
  access.end = access.begin + operand.size;
  access.ticket = task.ticket;
  access.queue = task.queue;
  access.layout = layout;
  access.site = site;
  access.reads = (operand.access & orAccessRead) != 0;
  access.writes = (operand.access & orAccessWrite) != 0;
  return access;
}

// Returns an access of the host, which either reads or writes.
Access access_of(const HostTensor& tensor, bool writes, uint32_t layout, uint32_t site) {
  Access access;
  access.begin = reinterpret_cast<uintptr_t>(tensor.begin);
  access.end = access.begin + tensor.size;
  access.layout = layout;
  access.site = site;
  access.reads = !writes;
  access.writes = writes;
  return access;
}

// Returns the release of an allocation, as an access of the host.
Access release_of(const Life& life, uint32_t site) {
  Access access;
  access.begin = life.begin;
  access.end = life.end;
  access.site = site;
  access.writes = true;
  return access;
}

// Returns the red zone that a task of the reason kRedZone fills.
RedZone red_zone_of(const orTaskInfo& fill) {
  const uintptr_t begin = address_of(fill.operands[0]);
  return {begin, begin + fill.operands[0].size, {fill.queue, fill.ticket}};
}

// Returns the bytes of a red zone in the kernel view, the only mapping of device memory that may be dereferenced.
std::span<uint8_t> bytes_of(const RedZone& zone) {
  return {static_cast<uint8_t*>(runtime::kernel_view(reinterpret_cast<void*>(zone.begin))), zone.end - zone.begin};
}

bool is_intact(const RedZone& zone) {
  const std::span<const uint8_t> bytes = bytes_of(zone);
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == runtime::kRedZoneByte; });
}

void refill(const RedZone& zone) {
  const std::span<uint8_t> bytes = bytes_of(zone);
  std::fill(bytes.begin(), bytes.end(), static_cast<uint8_t>(runtime::kRedZoneByte));
}

bool accesses_memory(orTaskKind kind) {
  return kind == orTaskKernel || kind == orTaskCopy || kind == orTaskFill;
}

// Returns the tensor behind operand number `index` of the calling thread's launch, or null if it is unknown. Operands
// and tensors usually have the same order.
const runtime::OperandLayout* find_layout(const orOperand& operand, size_t index) {
  const std::vector<runtime::OperandLayout>& layouts = runtime::operand_layouts();
  const auto fits = [&](const runtime::OperandLayout& layout) {
    return layout.address == operand.address && layout.size == operand.size;
  };
  if (index < layouts.size() && fits(layouts[index])) {
    return &layouts[index];
  }
  const auto found = std::find_if(layouts.begin(), layouts.end(), fits);
  return found == layouts.end() ? nullptr : &*found;
}

}  // namespace

void AccessChecker::start(std::vector<orStream_t> default_streams) {
  findings_.renew();
  uses_.learn();
  ordering_ = Ordering();
  shadow_.clear();
  ordering_.set_default_streams(std::move(default_streams));
}

void AccessChecker::stop() {
  shadow_.clear();
  captured_tasks_.clear();
}

std::vector<WatchedZone> AccessChecker::submit(const orTaskInfo& task) {
  const VectorClock& clock = ordering_.submit(task);
  const CapturedTask* const captured = find_captured(task);
  const bool is_replay = task.node != 0;
  const runtime::CallReason reason = captured == nullptr ? runtime::call_reason() : captured->reason;
  // The fill with the poison pattern is no part of the program: its write must not make memory defined.
  if (!accesses_memory(task.kind) || reason == runtime::CallReason::kPoison) {
    return {};
  }
  if (task.operands == nullptr) {
    shadow_.written_by_unknown(task.device);
    return {};
  }
  if (reason == runtime::CallReason::kRedZone) {
    if (!is_replay) {
      shadow_.set_red_zone(red_zone_of(task));
    }
    return {};
  }
  if (!is_replay) {
    return check_launch(task, clock);
  }
  if (captured == nullptr) {  // before start(), so that its tensors are unknown
    shadow_.written_by_unknown(task.device);
    return {};
  }
  return check_replay(task, *captured, clock);
}

// Returns the captured task of which this one is a replay, or null if there is none.
const AccessChecker::CapturedTask* AccessChecker::find_captured(const orTaskInfo& task) const {
  const auto found = task.node == 0 ? captured_tasks_.end() : captured_tasks_.find(task.node);
  return found == captured_tasks_.end() ? nullptr : &found->second;
}

// Returns the site of a task that the calling thread enqueues, with its stack and no other.
Site AccessChecker::site_of(const orTaskInfo& task) {
  Site site;
  site.kind = task.kind;
  site.operation = sites_.name(task.name);
  site.stack = launch_context().stack;
  return site;
}

// Checks the operands of a task outside of a graph. Returns their red zones.
std::vector<WatchedZone> AccessChecker::check_launch(const orTaskInfo& task, const VectorClock& clock) {
  const LaunchContext& context = launch_context();
  Site site = site_of(task);
  site.forward = context.forward;
  site.node = context.node.empty() ? nullptr : sites_.name(context.node.c_str());
  const uint32_t site_number = sites_.intern(site);
  std::vector<WatchedZone> zones;
  for (size_t i = 0; i < task.operand_count; ++i) {
    const orOperand& operand = task.operands[i];
    const uint32_t layout = task.kind == orTaskKernel ? intern_layout(operand, i) : 0;
    Access access = access_of(operand, {task.queue, task.ticket}, layout, site_number);
    access.uses_content = uses_content(task, i, access);
    report_all(shadow_.access(access, clock));
    watch(shadow_.filled_red_zone(access, clock), access, zones);
  }
  return zones;
}

// Checks the operands of a task of a graph, whose tensors are those of the capture. Returns their red zones.
std::vector<WatchedZone> AccessChecker::check_replay(const orTaskInfo& task, const CapturedTask& captured,
                                                     const VectorClock& clock) {
  Site site = site_of(task);
  site.captured = captured.stack;
  const uint32_t site_number = sites_.intern(site);
  std::vector<Violation> violations;
  std::vector<WatchedZone> zones;
  for (size_t i = 0; i < task.operand_count; ++i) {
    const CapturedOperand operand = i < captured.operands.size() ? captured.operands[i] : CapturedOperand();
    Access access = access_of(task.operands[i], {task.queue, task.ticket}, operand.layout, site_number);
    access.is_replay = true;
    const std::vector<Violation> found = shadow_.access(access, clock);
    if (operand.generation == 0 || operand.generation == shadow_.generation(access.begin)) {
      violations.insert(violations.end(), found.begin(), found.end());
      watch(operand.red_zone, access, zones);
    } else if (violations.empty()) {
      // The memory has another allocation since the capture. The violations in `found` are consequences of that.
      const Life life = shadow_.life(access.begin);
      violations.push_back({FindingKind::kGraphInput, {}, life, access, life});
    }
  }
  report_all(violations);
  return zones;
}

// Returns the layout number of the tensor behind an operand of a kernel, or 0 if the tensor is unknown.
uint32_t AccessChecker::intern_layout(const orOperand& operand, size_t index) {
  const runtime::OperandLayout* const found = find_layout(operand, index);
  if (found == nullptr) {
    return 0;
  }
  return layouts_.intern(
      {found->dtype, {found->sizes.begin(), found->sizes.end()}, {found->strides.begin(), found->strides.end()}});
}

// Returns true if a copy writes to pageable or pinned memory of the host. Its operands are destination and source.
bool AccessChecker::is_copy_to_host(const orTaskInfo& task) const {
  return task.kind == orTaskCopy && task.operand_count == 2 && shadow_.life(address_of(task.operands[0])).device < 0;
}

// Returns true if the task uses the values of operand number `index`, so that something must have written them.
bool AccessChecker::uses_content(const orTaskInfo& task, size_t index, const Access& access) const {
  if (!access.reads) {
    return false;
  }
  if (is_copy_to_host(task)) {
    return index == 1;
  }
  // Without a layout, the range may have bytes between the elements that nothing has to write.
  return access.layout != 0 && task.name != nullptr && uses_.uses_content(task.name, access.writes, index);
}

void AccessChecker::watch(const RedZone& zone, const Access& access, std::vector<WatchedZone>& zones) const {
  if (zone.end != 0) {
    zones.push_back({zone, access, shadow_.life(access.begin)});
  }
}

void AccessChecker::complete(const std::vector<WatchedZone>& zones) {
  for (const WatchedZone& watched : zones) {
    const bool is_replay = watched.access.is_replay;
    if (!is_replay && shadow_.red_zone(watched.access.begin) != watched.zone) {
      continue;  // the memory has another allocation already
    }
    if (is_intact(watched.zone)) {
      continue;
    }
    if (!is_replay) {        // the next replay of a graph fills it anyway
      refill(watched.zone);  // so that the next task is not blamed
    }
    report({FindingKind::kOutOfBounds, {}, watched.life, watched.access, watched.life});
  }
}

void AccessChecker::capture(const orTaskInfo& task) {
  if (captured_tasks_.size() >= kMaxCapturedTasks) {
    captured_tasks_.erase(captured_tasks_.begin());
  }
  CapturedTask captured{launch_context().stack, runtime::call_reason(), {}};
  if (captured.reason == runtime::CallReason::kRedZone) {
    shadow_.set_red_zone(red_zone_of(task));
  }
  for (size_t i = 0; task.operands != nullptr && i < task.operand_count; ++i) {
    const uintptr_t address = address_of(task.operands[i]);
    captured.operands.push_back(
        {intern_layout(task.operands[i], i), shadow_.generation(address), shadow_.red_zone(address)});
  }
  captured_tasks_[task.node] = std::move(captured);
}

void AccessChecker::synchronize(const orSyncInfo& sync, bool is_helper, bool is_implicit) {
  ordering_.synchronize(sync, is_helper, is_implicit);
}

void AccessChecker::region_event(const orMemoryInfo& memory) {
  const auto begin = reinterpret_cast<uintptr_t>(memory.address);
  if (memory.action == orMemoryAllocated || memory.action == orMemoryImported) {
    shadow_.add_region(begin, memory.size, memory.device);
  } else {
    shadow_.remove_region(begin);
  }
}

void AccessChecker::allocator_event(const runtime::MemoryEvent& event) {
  const auto address = reinterpret_cast<uintptr_t>(event.address);
  switch (event.kind) {
    case runtime::MemoryEventKind::kAllocated: {
      const bool is_private = event.pool.first != 0 || event.pool.second != 0;
      const StreamName owner = {event.device, event.stream};
      shadow_.allocate({address, address + event.size, event.device, owner, launch_context().allocation, 0}, is_private,
                       /*was_written=*/is_private);
      return;
    }
    case runtime::MemoryEventKind::kStreamRecorded:
      shadow_.record_stream(address, {event.other_device, event.other_stream});
      return;
    case runtime::MemoryEventKind::kFreeRequested:
      free_memory(address);
      return;
    case runtime::MemoryEventKind::kSegmentReleased:
      shadow_.remove_region(address);
      return;
    case runtime::MemoryEventKind::kFreeCompleted:
    case runtime::MemoryEventKind::kSegmentAllocated:
    case runtime::MemoryEventKind::kOutOfMemory:
      return;
  }
}

void AccessChecker::free_memory(uintptr_t address) {
  const uint32_t stack = launch_context().allocation;
  const std::vector<Access> uses = shadow_.free(address, stack);
  if (uses.empty()) {
    return;
  }
  const Life life = shadow_.life(address);
  const Access release = release_of(life, sites_.host_site("free", stack));
  for (const Access& use : uses) {
    report({FindingKind::kFreedInUse, use, life, release, life});
  }
}

void AccessChecker::add_existing(const Life& life, bool is_private) {
  if (shadow_.generation(life.begin) == 0) {  // not allocated since start()
    shadow_.allocate(life, is_private, /*was_written=*/true);
  }
}

void AccessChecker::allocate_pinned(uintptr_t begin, size_t size, uint32_t stack) {
  shadow_.allocate({begin, begin + size, -1, {}, stack, 0}, /*is_private=*/true, /*was_written=*/true);
}

void AccessChecker::release_pinned(uintptr_t begin) {
  const uintptr_t end = std::max(shadow_.life(begin).end, begin + 1);
  shadow_.allocate({begin, end, -1, {}, 0, 0}, /*is_private=*/true, /*was_written=*/true);
}

void AccessChecker::check_transfer(const char* name, c10::Stream stream, const runtime::Operands& operands) {
  const std::optional<uint32_t> queue = ordering_.find_queue({stream.device_index(), stream.id()});
  if (!queue.has_value()) {
    return;  // nothing was enqueued there
  }
  Site site;
  site.operation = sites_.name(name);
  site.stack = launch_context().stack;
  const uint32_t site_number = sites_.intern(site);
  for (size_t i = 0; i < operands.size(); ++i) {
    const orOperand& operand = operands.data()[i];
    const Access access = access_of(operand, ordering_.newest_task(*queue), intern_layout(operand, i), site_number);
    report_all(shadow_.access(access, ordering_.next_clock(*queue)));
  }
}

bool AccessChecker::is_host_ordered(const HostTensor& tensor, bool writes) {
  return shadow_.host_access(access_of(tensor, writes, layouts_.intern(tensor.layout), 0)).empty();
}

void AccessChecker::check_host_access(const char* operation, const HostTensor& tensor, bool writes, uint32_t stack) {
  const uint32_t site = sites_.host_site(operation, stack);
  report_all(shadow_.host_access(access_of(tensor, writes, layouts_.intern(tensor.layout), site)));
}

void AccessChecker::report_poison(const char* operation, const HostTensor& tensor, uint32_t stack) {
  const uint32_t site = sites_.host_site(operation, stack);
  const Access access = access_of(tensor, /*writes=*/false, layouts_.intern(tensor.layout), site);
  report({FindingKind::kPoison, {}, {}, access, {}});
}

void AccessChecker::report(const Violation& violation) {
  const bool is_on_host = sites_.site(violation.second.site).on_host;
  findings_.add(violation, ordering_.stream(violation.first.queue),
                is_on_host ? StreamName() : ordering_.stream(violation.second.queue));
}

void AccessChecker::report_all(const std::vector<Violation>& violations) {
  for (const Violation& violation : violations) {
    report(violation);
  }
}

}  // namespace openreg::sanitizer
