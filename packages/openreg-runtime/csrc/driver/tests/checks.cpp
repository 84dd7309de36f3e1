// SPDX-License-Identifier: BSD-3-Clause
// This program tests the C API on machines without Python, such as an emulator. It repeats those of the Python tests
// (tests/driver of openreg-runtime) that depend on the operating system or the processor. CTest runs each check in a
// process of its own.
//
//   checks NAME               runs a check; exit status 0 if it succeeds
//   checks NAME ARGUMENT      runs the part of a check that belongs in a second process
//
// A new check is a function in a header and a line in kChecks, which CMakeLists.txt reads.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "checks_common.h"
#include "checks_memory.h"
#include "checks_observer.h"
#include "checks_process.h"
#include "checks_work.h"

namespace checks {
namespace {

// Fails on purpose, and CTest expects that. Shows that a failing check is noticed.
void a_planted_fault_is_seen() {
  upload(allocate(kPage), "right");
  CHECK(download(allocate(kPage), 5) == "wrong");
}

struct Check {
  const char* name;
  void (*run)();
};

#define CHECK_OF(name) {#name, name}
constexpr Check kChecks[] = {
    CHECK_OF(the_host_cannot_read_device_memory),
    CHECK_OF(the_host_cannot_read_what_no_one_allocated),
    CHECK_OF(the_kernel_view_is_the_same_memory),
    CHECK_OF(one_offset_serves_all_devices),
    CHECK_OF(capacity_is_exact),
    CHECK_OF(allocations_of_any_size_in_any_order),
    CHECK_OF(pinned_memory_is_copied_asynchronously),
    CHECK_OF(copies_between_devices),
    CHECK_OF(poison_fills_what_is_allocated),
    CHECK_OF(a_stream_runs_in_order),
    CHECK_OF(an_attempt_to_launch_does_not_wait_for_a_full_stream),
    CHECK_OF(an_event_orders_streams_of_two_devices),
    CHECK_OF(priorities_choose_between_ready_streams),
    CHECK_OF(a_delay_takes_its_time),
    CHECK_OF(threads_that_come_and_go_have_devices_of_their_own),
    CHECK_OF(host_functions_keep_their_place),
    CHECK_OF(a_graph_repeats_what_was_recorded),
    CHECK_OF(a_stream_waits_for_a_value_of_the_host),
    CHECK_OF(an_observer_sees_each_task_complete_once),
    CHECK_OF(a_callback_that_throws_is_reported_at_the_end),
    CHECK_OF(a_callback_calls_no_hook),
    CHECK_OF(a_failed_kernel_stops_its_device_until_a_reset),
    CHECK_OF(injected_faults_come_once),
    CHECK_OF(a_refused_setting_is_named),
    CHECK_OF(a_seed_repeats_its_order),
    CHECK_OF(a_process_ends_at_work),
    CHECK_OF(a_callback_may_end_the_process),
    CHECK_OF(another_process_maps_our_memory),
    CHECK_OF(a_planted_fault_is_seen),
};

struct Helper {
  const char* name;
  void (*run)(const char* argument);
};

constexpr Helper kHelpers[] = {
    {"the_order_is", the_order_is},
    {"the_handle_opens", the_handle_opens},
    {"the_handle_is_refused", the_handle_is_refused},
};

bool run(const char* name, const char* argument) {
  for (const Check& check : kChecks) {
    if (argument == nullptr && std::strcmp(name, check.name) == 0) {
      check.run();
      return true;
    }
  }
  for (const Helper& helper : kHelpers) {
    if (argument != nullptr && std::strcmp(name, helper.name) == 0) {
      helper.run(argument);
      return true;
    }
  }
  return false;
}

}  // namespace
}  // namespace checks

int main(int argc, char** argv) {
  const char* emulator = std::getenv("CHECKS_EMULATOR");
  checks::own_command = std::string(emulator == nullptr ? "" : emulator) + " " + argv[0];
  if (argc < 2 || argc > 3 || !checks::run(argv[1], argc == 3 ? argv[2] : nullptr)) {
    std::fprintf(stderr, "usage: checks NAME [ARGUMENT]; the names are in checks.cpp\n");
    return 2;
  }
  return 0;
}
