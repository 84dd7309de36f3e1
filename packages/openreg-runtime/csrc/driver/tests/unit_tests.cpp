// SPDX-License-Identifier: BSD-3-Clause
// This program contains the unit tests of classes that the library does not export: the scheduler, its parts and the
// threads of the engines.
//
//   parts [NAME]     runs one check, or all of them; exit status 0 if they succeed
//
// A new check is a function in a header and a line in kChecks, which CMakeLists.txt reads.
#include <cstdio>
#include <cstring>

#include "unit_captures.h"
#include "unit_queues.h"
#include "unit_scheduler.h"
#include "unit_threads.h"
#include "unit_time.h"
#include "unit_waits.h"

namespace parts {
namespace {

struct Check {
  const char* name;
  void (*run)();
};

#define CHECK_OF(name) {#name, name}
constexpr Check kChecks[] = {
    CHECK_OF(ready_streams_run_by_priority_then_in_order),
    CHECK_OF(a_seed_chooses_among_the_highest_priority),
    CHECK_OF(delays_end_in_the_order_of_their_times),
    CHECK_OF(a_destroyed_stream_is_used_again_when_it_is_empty),
    CHECK_OF(a_stream_waits_for_the_ticket_of_another),
    CHECK_OF(a_long_chain_of_waits_is_no_recursion),
    CHECK_OF(only_demanded_work_runs_under_a_seed),
    CHECK_OF(a_signal_ends_the_waits_that_it_reaches),
    CHECK_OF(a_failed_semaphore_fails_who_waits),
    CHECK_OF(under_a_seed_a_signal_waits_for_its_turn),
    CHECK_OF(a_demand_finds_the_wait_in_its_way),
    CHECK_OF(each_task_is_reported_to_observers_once),
    CHECK_OF(a_duration_that_is_not_returned_changes_nothing),
    CHECK_OF(a_capture_records_a_fork_and_its_join),
    CHECK_OF(a_branch_that_begins_with_the_capture_follows_what_precedes_the_launch),
    CHECK_OF(a_capture_that_is_not_joined_is_invalidated),
    CHECK_OF(what_a_capture_cannot_repeat_is_refused),
    CHECK_OF(a_replay_runs_what_was_recorded_in_its_order),
    CHECK_OF(a_capture_that_begins_while_a_call_waits_for_room_does_not_record_it),
    CHECK_OF(a_call_that_waits_for_room_in_order_to_be_recorded_does_not_run_after_the_capture),
    CHECK_OF(an_event_whose_record_fails_is_as_before),
    CHECK_OF(a_query_ends_with_simulated_time),
    CHECK_OF(a_query_that_outlives_simulated_time_does_not_advance_it),
    CHECK_OF(an_entry_begins_when_all_that_it_needs_is_there),
    CHECK_OF(no_answer_makes_a_clock_go_back),
    CHECK_OF(tickets_of_a_stream_that_was_used_before_are_distinguished),
    CHECK_OF(what_has_begun_by_the_hosts_clock_runs_without_a_wait),
    CHECK_OF(engines_work_until_they_are_stopped),
    CHECK_OF(a_pause_waits_for_the_task_and_delays_the_next_one),
    CHECK_OF(an_engine_sleeps_during_a_pause),
    CHECK_OF(polling_in_vain_is_given_up_and_tried_again),
    CHECK_OF(a_host_thread_takes_the_place_of_an_engines_thread),
};

int run(const char* name) {
  int count = 0;
  for (const Check& check : kChecks) {
    if (name == nullptr || std::strcmp(name, check.name) == 0) {
      check.run();
      ++count;
    }
  }
  return count;
}

}  // namespace
}  // namespace parts

int main(int argc, char** argv) {
  if (argc > 2 || parts::run(argc == 2 ? argv[1] : nullptr) == 0) {
    std::fprintf(stderr, "usage: unit_tests [NAME]; the names are in unit_tests.cpp\n");
    return 2;
  }
  return 0;
}
