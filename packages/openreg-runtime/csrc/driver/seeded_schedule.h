// SPDX-License-Identifier: BSD-3-Clause
// The schedule when a seed selects it (OPENREG_SCHEDULE_SEED).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "command_processor.h"
#include "deadlines.h"
#include "demand.h"
#include "engine.h"
#include "lock.h"
#include "seeded_order.h"
#include "semaphores.h"
#include "stream.h"
#include "task_tracer.h"

namespace openreg::driver {

// Work is held back until the host needs it, then runs one task at a time over all devices, in an order that follows
// from the program and the seed. Guarded by the scheduler's mutex.
class SeededSchedule {
 public:
  // `engine` is the one that runs everything.
  SeededSchedule(SeededOrder& order, Engine& engine, Deadlines& deadlines, Semaphores& semaphores,
                 CommandProcessor& processor, TaskTracer& tracer)
      : order_(order),
        engine_(engine),
        deadlines_(deadlines),
        semaphores_(semaphores),
        processor_(processor),
        tracer_(tracer) {}
  SeededSchedule(const SeededSchedule&) = delete;
  SeededSchedule& operator=(const SeededSchedule&) = delete;

  // Keeps a demand in the list while it lives; with a null schedule it does nothing.
  class Registration {
   public:
    Registration(SeededSchedule* schedule, Demand& demand) : schedule_(schedule), demand_(demand) {
      if (schedule_ != nullptr) {
        schedule_->add(demand_);
      }
    }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    ~Registration() {
      if (schedule_ != nullptr) {
        schedule_->remove(demand_);
      }
    }

   private:
    SeededSchedule* const schedule_;
    Demand& demand_;
  };

  // For the engine. The stream whose head runs now; null when nothing is demanded, or nothing can run.
  Stream* next();
  // A task has run: lets the time pass that it took, in virtual nanoseconds.
  void pass_duration(const Stream& stream, const Task& task);
  // How long the engine may sleep until a demand has waited too long, in nanoseconds; 0: until it is woken.
  uint64_t longest_sleep() const;

  // For the host. A query asks whether a ticket is done (of null: always), and lets one task run. Whether it did, and
  // so gave up the lock for a while. Not to be called by a kernel.
  bool run_one_task(Stream* stream, uint64_t ticket, Lock& lock);
  // Whether the next call that enqueues has to let tasks run.
  bool has_backlog() const;
  // After each call that enqueues: lets tasks run when too many are held back.
  void note_submission(Lock& lock);
  // A semaphore was signalled or has failed; the engine takes that when its turn has come.
  void note_signal() { engine_.wake(); }
  // The engine has stopped: nobody is to wait for it.
  void stop() { met_.notify_all(); }

 private:
  void add(Demand& demand);
  void remove(Demand& demand);
  void wait(const Demand& demand, Lock& lock);
  bool is_demanded();
  bool take_signal();
  bool has_stalled() const;
  void pass_time(uint64_t nanoseconds);
  void count_task();

  SeededOrder& order_;
  Engine& engine_;
  Deadlines& deadlines_;
  Semaphores& semaphores_;
  CommandProcessor& processor_;
  TaskTracer& tracer_;
  std::vector<Demand*> demands_;
  std::condition_variable met_;  // notified when a demand is met
  uint64_t active_at_ = 0;       // when a thread that decides the order last wanted something
  uint64_t blocked_by_ = 0;  // number of the wait for a semaphore that is in everybody's way, since `blocked_since_`
  uint64_t blocked_since_ = 0;
  size_t polls_ = 0;  // queries in a row that let nothing run
};

// Whether the calling thread is one that moves communication along (orThreadSetProgress), for reading and writing.
bool& on_progress_thread();

}  // namespace openreg::driver
