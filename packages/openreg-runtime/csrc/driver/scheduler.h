// SPDX-License-Identifier: BSD-3-Clause
// Decides which stream's head runs next. Every interleaving between streams is chosen here.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

#include "device.h"
#include "event.h"
#include "faults.h"
#include "graph.h"
#include "handle_table.h"
#include "observers.h"
#include "seeded_order.h"
#include "settings.h"
#include "stream.h"
#include "timeline_semaphore.h"

namespace openreg::driver {

class AddressSpace;

constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -3;
constexpr size_t kStreamCapacity = 16384;      // entries that a stream holds before launches block
constexpr uint64_t kWakeNanoseconds = 20'000;  // what waking a thread that sleeps takes, about
constexpr size_t kRoomToMake = 64;             // entries that a blocked launch waits for

// Proof that the scheduler's mutex is held.
using Lock = std::unique_lock<std::mutex>;

enum EngineIndex { kCompute, kCopy, kEngineCount };

// FIFO within a stream; between ready streams by priority, then in the order in which they became ready, or, when a
// seed is set, as the seed says. One compute engine serves all devices, because only one thread of a process can run
// parallel kernels without slowing OpenMP down; large copies, which need no parallelism, run on a second engine.
class Scheduler {
 public:
  Scheduler(const AddressSpace& space, std::vector<std::unique_ptr<Device>>& devices, Faults& faults,
            const Settings& settings);

  Lock lock();

  // The object behind a handle; throws Error(orErrorInvalidResourceHandle). A null stream is the default stream of the
  // calling thread's current device.
  Stream& stream(orStream_t handle, const Lock& lock);
  Event& event(orEvent_t handle, const Lock& lock);
  Graph& graph(orGraph_t handle, const Lock& lock);
  static orStream_t handle(const Stream& stream);
  static orEvent_t handle(const Event& event);
  TimelineSemaphore& semaphore(orSemaphore_t handle, const Lock& lock);
  static orGraph_t handle(const Graph& graph);
  static orSemaphore_t handle(const TimelineSemaphore& semaphore);

  Stream& create_stream(Device& device, int priority, const Lock& lock);
  // Throws Error(orErrorStreamCaptureUnsupported) while the stream is capturing.
  void destroy_stream(Stream& stream, const Lock& lock);
  Event& create_event(bool timed, const Lock& lock);
  void destroy_event(Event& event, const Lock& lock);
  Graph& create_graph(std::shared_ptr<GraphBody> body, const Lock& lock);
  // Gives what the handle owned; the caller drops it after the lock.
  std::shared_ptr<GraphBody> destroy_graph(Graph& graph, const Lock& lock);

  // Appends, or records in the stream's capture; blocks while the stream is full. Throws as make_room() does, and
  // Error(orErrorDeinitialized) while the process exits; then the task is not taken. Returns the entry's ticket.
  uint64_t submit(Stream& stream, const Task& task, Lock& lock, const Operands& operands = {});
  // The same, then wait(). When it throws, the task was not taken, or an engine is done with it.
  void submit_and_wait(Stream& stream, const Task& task, Lock& lock, const Operands& operands = {});
  // The same as submit(), unless that could block or let other work run: false then, and the task is not taken. For
  // kernels, which launch_blocking() waits for.
  bool try_submit(Stream& stream, const Task& task, Lock& lock, const Operands& operands);
  // Blocks while the stream is full; the next submit() then keeps the lock. Throws Error(orErrorLaunchFailure) when the
  // device has failed, Error(orErrorDeviceLost) when it is lost, Error(orErrorStreamCaptureInvalidated) when the
  // stream's capture is spoiled, Error(orErrorInvalidResourceHandle) when the stream was destroyed while this call
  // blocked.
  void make_room(Stream& stream, Lock& lock);
  // What make_room() throws, for what enqueues nothing.
  static void check_open(const Stream& stream, const Lock& lock) {
    check_healthy(*stream.device, lock);
    if (stream.capture != nullptr) [[unlikely]] {
      check_not_spoiled(*stream.capture);
    }
  }

  // Waits until the ticket is done, which `event` marks if there is one. Throws Error(orErrorLaunchFailure) when
  // `device`, to which the stream belonged when the ticket was drawn, has failed; Error(orErrorNotSupported) when
  // called by a kernel; Error(orErrorDeinitialized) when the process exits first.
  void wait(Stream& stream, const Device& device, uint64_t ticket, Lock& lock, orEvent_t event = nullptr);
  // Waits for everything that all streams of the device hold now, unless check_may_block() refuses. Does not look at
  // the error state.
  void drain(Device& device, Lock& lock);
  // Waits until no engine works, and lets none begin anything before resume(). Throws Error(orErrorNotSupported) when
  // called by a kernel.
  void pause(Lock& lock);
  void resume(const Lock& lock);
  static void check_healthy(const Device& device, const Lock& /*lock*/) {
    if (device.failed) [[unlikely]] {
      refuse(device);
    }
  }
  // Called by queries, which ask whether a ticket is done (of null: always). With a seed, work is held back until the
  // host waits, so a query lets one task run.
  // Whether it did, and so gave up the lock for a while.
  bool let_one_task_run(Stream* stream, uint64_t ticket, Lock& lock) {
    return seeded_.has_value() && run_one_task(stream, ticket, lock);
  }
  // Whether every kernel, copy and fill is to be waited for by the call that enqueues it, except in a capture.
  bool launch_blocking() const { return launch_blocking_; }
  bool is_blocking(const Stream& stream, const Lock& /*lock*/) const {
    return launch_blocking_ && stream.capture == nullptr;
  }

  // Semaphores (scheduler_semaphores.cpp).
  TimelineSemaphore& create_semaphore(uint64_t value, const Lock& lock);
  // Throws Error(orErrorIllegalState) while a stream holds a wait for it.
  void destroy_semaphore(TimelineSemaphore& semaphore, const Lock& lock);
  // Throws Error(orErrorIllegalState) when the semaphore has failed.
  static void check_sound(const TimelineSemaphore& semaphore, const Lock& lock);
  // Throw as check_sound() does; Error(orErrorInvalidValue) for a value below the one before.
  void signal(TimelineSemaphore& semaphore, uint64_t value, const Lock& lock);
  void fail(TimelineSemaphore& semaphore, std::string reason, const Lock& lock);
  // Enqueues a wait, unless it is over; after make_room(). Throws as check_may_wait_outside() does.
  void wait_for_value(Stream& stream, TimelineSemaphore& semaphore, uint64_t value, Lock& lock);

  // Captures (scheduler_capture.cpp).
  void begin_capture(Stream& stream, orStreamCaptureMode mode, const Lock& lock);
  // Null with `spoiled_by` set when the capture is not sound. The caller drops what is returned after the lock.
  std::shared_ptr<GraphBody> end_capture(Stream& stream, std::string& spoiled_by, const Lock& lock);
  void record_in_capture(Event& event, Stream& stream, const Lock& lock);
  void wait_in_capture(Stream& stream, const Event& event, const Lock& lock);
  // Refuses a call that would wait for the stream, the event or the whole device, with
  // Error(orErrorStreamCaptureUnsupported); the first two spoil the capture.
  static void check_not_capturing(Stream& stream, const Lock& lock);
  void check_not_captured(const Event& event, const Lock& lock);
  // The same for a wait that a replay could not repeat.
  static void check_may_wait_outside(Stream& stream, const Lock& lock);
  void check_may_block(const Device& device, const Lock& lock);
  // Enqueues the work of a graph, as a whole: blocks only before. Throws as make_room() does.
  void launch_graph(const std::shared_ptr<GraphBody>& body, Stream& stream, Lock& lock);

  // Observers (scheduler_observed.cpp).
  Observers& observers() { return observers_; }
  orSubscription_t subscribe(const orSubscriber& table, void* user, const Lock& lock);
  // Waits for what the subscription has seen. Throws Error(orErrorIllegalState) afterwards when a callback threw.
  void unsubscribe(orSubscription_t handle, Lock& lock);
  // Whether the operands of a launch are used: by an observer, or by the replays of a capture. Needs no lock.
  bool operands_wanted() const { return operands_wanted_.load(std::memory_order_relaxed); }
  // To be called only while observers().any(): by no ticket of a stream when nothing is marked.
  void observe_sync(orSyncKind kind, const Device& device, const Stream* stream, uint64_t ticket,
                    orEvent_t event = nullptr, const Stream* waiting = nullptr);

  // What was done, with what engines are doing up to now.
  Counters counters(const Device& device, const Lock& lock) const;
  Counters counters(const Stream& stream, const Lock& lock) const;
  int utilization(const Device& device, const Lock& lock) const;
  void engine_stats(EngineIndex index, orEngineStats& stats, const Lock& lock) const;

  // Stops the engines after what they are running; queued entries are dropped, and who waits for one is told. For
  // process exit.
  void stop();

 private:
  struct Engine {
    // One FIFO per priority level, highest first.
    std::array<std::deque<Stream*>, kLeastPriority - kGreatestPriority + 1> ready;
    std::condition_variable work;
    bool sleeping = false;
    std::atomic<bool> has_work{false};
    std::thread thread;
    const Stream* running = nullptr;  // whose task it runs, since `running_since`
    const Device* running_device = nullptr;
    uint64_t running_since = 0;
    uint64_t tasks = 0;
    uint64_t busy_nanoseconds = 0;
  };
  using Deadline = std::pair<uint64_t, Stream*>;

  static void take(Lock& lock);
  uint64_t append(Stream& stream, const Task& task, const Lock& lock, const Operands& operands = {},
                  uint64_t graph_launch = 0);
  void start(const Lock& /*lock*/) {
    if (!started_ || stopping_) [[unlikely]] {
      start_engines();
    }
  }
  void start_engines();
  [[noreturn]] static void refuse(const Device& device);
  static void check_not_spoiled(const Capture& capture);
  void run_engine(EngineIndex index);
  void run_task(Engine& engine, Stream& stream, Lock& lock);
  void run_timer();
  void idle(Engine& engine, Lock& lock);
  Stream* next_stream(Engine& engine);
  static Stream* take_ready(Engine& engine);
  void make_ready(Stream& stream, EngineIndex index);
  void wake(Engine& engine);
  void advance(Stream& stream);
  bool pass_head(Stream& stream, const Task& head);
  void complete_head(Stream& stream);
  bool pass_semaphore_wait(Stream& stream, const Task::SemaphoreWait& wait);
  void reach(TimelineSemaphore& semaphore, uint64_t value);
  void fail_wait(Stream& stream, const TimelineSemaphore& semaphore);
  void fail_device(Device& device, std::string reason);
  void settle();
  void look_for(const Stream& stream, uint64_t ticket, Lock& lock);
  void wait_for_ticket(Stream& stream, uint64_t ticket, Lock& lock);
  void inject_fault(const Stream& stream, Task& task);

  // With a seed (scheduler_seeded.cpp).
  class Demand;
  Stream* take_demanded(Engine& engine);
  bool is_demanded();
  bool take_signal();
  bool is_quiet() const;
  uint64_t patience_left() const;
  uint64_t duration_of(const Stream& stream, const Task& task);
  void pass_virtual_time(uint64_t nanoseconds);
  void relieve_backlog(Lock& lock) {
    if (seeded_.has_value()) [[unlikely]] {
      note_submission(lock);
    }
  }
  void note_submission(Lock& lock);
  bool has_backlog() const;
  bool run_one_task(Stream* stream, uint64_t ticket, Lock& lock);
  uint64_t clock() const;

  void update_wanted(const Lock& lock);
  static orTaskInfo describe(const Stream& stream, const Task& task, uint64_t ticket);
  void observe_submit(Stream& stream, Task& task, const Operands& operands, uint64_t graph_launch);
  void observe_complete(const Stream& stream, const Task& task);
  void observe_semaphore(orSyncKind kind, const TimelineSemaphore& semaphore, uint64_t value, const Stream* waiting);

  void record_node(Stream& stream, const Task& task, size_t wait_lane, uint64_t wait_place,
                   const Operands& operands = {});

  const AddressSpace& space_;
  std::vector<std::unique_ptr<Device>>& devices_;
  Faults& faults_;
  const bool launch_blocking_;
  std::mutex mutex_;
  HandleTable<Stream> streams_;
  HandleTable<Event> events_;
  HandleTable<Graph> graphs_;
  HandleTable<TimelineSemaphore> semaphores_;
  uint64_t newest_semaphore_wait_ = 0;
  std::array<Engine, kEngineCount> engines_;
  std::deque<Stream*> unblocked_;  // streams whose head is done but not taken off yet
  std::thread timer_thread_;
  std::condition_variable timer_work_;
  std::priority_queue<Deadline, std::vector<Deadline>, std::greater<>> deadlines_;
  std::optional<SeededOrder> seeded_;
  std::vector<Demand*> demands_;
  std::condition_variable demand_met_;
  uint64_t quiet_since_ = 0;    // when a thread that decides the order last wanted something
  uint64_t obstructed_by_ = 0;  // the wait for a semaphore that is in everybody's way, since `obstructed_since_`
  uint64_t obstructed_since_ = 0;
  size_t polls_ = 0;    // queries in a row that let nothing run
  size_t pending_ = 0;  // entries in all queues
  std::vector<std::unique_ptr<Capture>> captures_;
  uint64_t newest_capture_ = 0;
  uint64_t newest_graph_launch_ = 0;
  Observers observers_;
  std::atomic<bool> operands_wanted_{false};
  int pauses_ = 0;  // calls of pause() without their resume()
  std::condition_variable quiet_;
  bool started_ = false;
  bool stopping_ = false;  // engines take no more work
  bool stopped_ = false;   // nothing runs any more
};

// Nanoseconds of the steady clock.
uint64_t now();

// Whether the calling thread is one that moves communication along (orThreadSetProgress), for reading and writing.
bool& on_progress_thread();

}  // namespace openreg::driver
