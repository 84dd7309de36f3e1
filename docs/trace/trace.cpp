// SPDX-License-Identifier: BSD-3-Clause
// Cuts the record of callgrind at each event that the device reports to its observers. Each cut writes what its thread
// has executed since its last cut, under the name of the event.
#include <valgrind/callgrind.h>

#include <string>

#include "openreg.h"
#include "openreg/runtime/memory_observer.h"
#include "openreg/runtime/status.h"

namespace runtime = openreg::runtime;

namespace {

const char* name_of(orTaskKind kind) {
  return kind == orTaskKernel ? "kernel" : "task that is no kernel";
}

void cut(const std::string& name) {
  CALLGRIND_DUMP_STATS_AT(name.c_str());
}

orSubscriber task_observer() {
  orSubscriber table{};
  table.size = sizeof(table);
  table.version = OPENREG_SUBSCRIBER_VERSION;
  table.submit = [](void*, const orTaskInfo* task, uint64_t*) {
    cut(std::string(name_of(task->kind)) + " submitted: " + (task->name == nullptr ? "" : task->name));
  };
  table.complete = [](void*, const orTaskCompletion*) { cut("complete"); };
  return table;
}

orSubscription_t tasks = nullptr;
uint64_t memory = 0;

}  // namespace

// From here on callgrind records; with observers if `observed` is not 0.
extern "C" void begin(int observed) {
  if (observed != 0) {
    static const orSubscriber table = task_observer();
    OPENREG_CHECK(orSubscribe(&table, nullptr, &tasks));
    memory = runtime::observe_memory({[](const runtime::MemoryEvent&) { cut("memory allocated"); },
                                      runtime::memory_event_bit(runtime::MemoryEventKind::kAllocated)});
  }
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
}

extern "C" void returned() {
  cut("returned");
}

// To be called once the device has nothing left to do.
extern "C" void end() {
  CALLGRIND_STOP_INSTRUMENTATION;
  if (tasks != nullptr) {
    runtime::stop_observing_memory(memory);
    OPENREG_CHECK(orUnsubscribe(tasks));
  }
}
