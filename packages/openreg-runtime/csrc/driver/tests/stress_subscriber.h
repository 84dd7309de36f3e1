// SPDX-License-Identifier: BSD-3-Clause
// In this part of the stress program, two observers subscribe and unsubscribe at random while other threads use the
// device. It checks that each receives exactly one `complete` for each `submit`, and no callback after orUnsubscribe().
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "openreg.h"
#include "stress_common.h"

namespace stress {

// The callbacks that one subscription has received. It needs no lock, because the device calls one callback at a time,
// and none after orUnsubscribe(). `submit` sets the correlation id to the index of the task in `pending_`.
class Watcher {
 public:
  explicit Watcher(uint64_t seed) : random_(seed) {}

  void round(bool forgets_one = false) {
    forgets_one_ = forgets_one;
    pending_.clear();
    submits_ = completes_ = syncs_ = 0;
    ended_ = false;
    const bool wants_operands = pick(random_, 2) == 0;
    orSubscriber table{};
    table.size = sizeof(table);
    table.version = OPENREG_SUBSCRIBER_VERSION;
    table.flags = wants_operands ? orSubscribeOperands : 0;
    wants_operands_ = wants_operands;
    table.submit = [](void* user, const orTaskInfo* task, uint64_t* correlation) {
      static_cast<Watcher*>(user)->submit(*task, *correlation);
    };
    table.complete = [](void* user, const orTaskCompletion* completion) {
      static_cast<Watcher*>(user)->complete(*completion);
    };
    table.sync = [](void* user, const orSyncInfo*) { ++static_cast<Watcher*>(user)->syncs_; };
    table.memory = [](void* user, const orMemoryInfo* memory) { static_cast<Watcher*>(user)->memory(*memory); };
    orSubscription_t subscription = nullptr;
    CHECK(orSubscribe(&table, this, &subscription) == orSuccess);
    CHECK(!wants_operands || orOperandsWanted() == 1);
    work();
    CHECK(orUnsubscribe(subscription) == orSuccess);
    ended_ = true;
    CHECK(submits_ >= kOwnLaunches);
    CHECK(completes_ == submits_);
    CHECK(std::all_of(pending_.begin(), pending_.end(), [](const Pending& task) { return task.completes == 1; }));
    CHECK(orUnsubscribe(subscription) == orErrorInvalidResourceHandle);
    observed += submits_;
  }

  static inline std::atomic<uint64_t> observed{0};

 private:
  static constexpr uint64_t kOwnLaunches = 20;

  struct Pending {
    uint32_t queue;
    uint64_t ticket;
    uint32_t completes = 0;
  };

  // Enqueues tasks, some of which are not complete when the round ends.
  void work() {
    CHECK(orSetDevice(static_cast<int>(pick(random_, kWorkDevices))) == orSuccess);
    void* address = nullptr;
    CHECK(orMalloc(&address, 4096) == orSuccess);
    const orOperand operands[] = {{address, 64, orAccessReadWrite}, {address, 4096, orAccessRead}};
    const orKernel kernel{"observed", [](void*, char*, size_t) { return orSuccess; }, nullptr, nullptr};
    for (uint64_t i = 0; i < kOwnLaunches; ++i) {
      CHECK(orLaunchKernelWithOperands(nullptr, &kernel, operands, 2) == orSuccess);
    }
    pause_milliseconds(pick(random_, 20));
    CHECK(orFree(address) == orSuccess);
    const uint64_t more = pick(random_, 50);
    for (uint64_t i = 0; i < more; ++i) {
      CHECK(orLaunchKernel(nullptr, &kernel) == orSuccess);
    }
  }

  void submit(const orTaskInfo& task, uint64_t& correlation) {
    CHECK(!ended_);
    const bool always_tells = task.kind == orTaskCopy || task.kind == orTaskFill;
    CHECK(wants_operands_ || always_tells || task.operands == nullptr);
    CHECK(task.operands != nullptr || task.operand_count == 0);
    CHECK(submits_ % 64 != 0 || orDeviceSynchronize() == orErrorNotSupported);  // not allowed in a callback
    correlation = pending_.size();
    pending_.push_back({task.queue, task.ticket});
    ++submits_;
  }

  void complete(const orTaskCompletion& completion) {
    CHECK(!ended_);
    CHECK(completion.correlation < pending_.size());
    if (forgets_one_) {
      forgets_one_ = false;
      return;
    }
    Pending& task = pending_[completion.correlation];
    CHECK(task.queue == completion.queue && task.ticket == completion.ticket);
    CHECK(completion.begin <= completion.end);
    CHECK(completion.skipped == 0 || completion.status != orSuccess);
    ++task.completes;
    ++completes_;
  }

  void memory(const orMemoryInfo& memory) const {
    CHECK(!ended_);
    CHECK(memory.address != nullptr && memory.size > 0);
  }

  Random random_;
  bool forgets_one_ = false;
  bool wants_operands_ = false;
  bool ended_ = true;
  uint64_t submits_ = 0;
  uint64_t completes_ = 0;
  uint64_t syncs_ = 0;
  std::vector<Pending> pending_;
};

inline void watch_until_stopped(uint64_t seed) {
  Watcher watcher(seed);
  while (!stop) {
    watcher.round();
    pause_milliseconds(seed % 3);
  }
}

}  // namespace stress
