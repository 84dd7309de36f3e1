// SPDX-License-Identifier: BSD-3-Clause
// Creates, splits and destroys a group, and enqueues a call on a communication stream. argument_checks.cpp checks and
// describes calls. reductions.cpp, data_movement.cpp and point_to_point.cpp define the collectives and messages.
#include "group/process_group.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <utility>

#include "group/faults.h"
#include "group/trace.h"
#include "group/work.h"
#include "openreg/runtime/allocator.h"
#include "openreg/runtime/capture.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/stream.h"
#include "openreg/runtime/tool_hooks.h"
#include "progress/platform.h"
#include "progress/threads.h"
#include "transport/transport_control_channel.h"

namespace openreg::distributed {

namespace {

// The longest timeout, which also stands for no timeout.
constexpr std::chrono::hours kLongestTimeout{24 * 365};
// The time that an exiting process waits for the threads of groups that it has not destroyed. Longer than those of a
// group that has failed wait for its peers (TransportEnd::kAfterPeers).
constexpr std::chrono::seconds kLongestExit{3};
// The highest priority, because communication streams run short tasks for which peers wait.
constexpr int kUrgent = std::numeric_limits<int>::min();
// The default priority. A seeded schedule then also orders communication streams and the program's own streams.
constexpr int kLikeOthers = 0;

// The operands and staging buffers that an operation keeps alive until the transport does not use them any more.
struct RetainedTensors {
  std::vector<at::Tensor> tensors;
};

// Returns a future that is complete in stream order: its callbacks run at once, on streams that wait for the results.
c10::intrusive_ptr<c10::ivalue::Future> complete_future(const std::vector<at::Tensor>& results, c10::Device device) {
  auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                         std::vector<c10::Device>{device});
  future->markCompleted(at::IValue(results));  // Records events on the current streams.
  return future;
}

// Returns null for a group of one rank.
std::shared_ptr<ControlChannel> control_channel_over(c10d::Backend& transport) {
  return transport.getSize() > 1 ? std::make_shared<TransportControlChannel>(transport) : nullptr;
}

// Returns the number of a new group in this process.
int64_t next_number() {
  static std::atomic<int64_t> next{0};
  return next++;
}

// Returns the ranks of the group by their numbers in the default group. An empty list stands for all ranks.
const std::vector<uint64_t>& global_ranks_of(c10d::Backend& transport) {
  return transport.getBackendOptions()->global_ranks_in_group;
}

int global_rank(c10d::Backend& transport) {
  const std::vector<uint64_t>& ranks = global_ranks_of(transport);
  const auto rank = static_cast<size_t>(transport.getRank());
  return static_cast<int>(rank < ranks.size() ? ranks[rank] : rank);
}

// Ends all groups when the process exits. Exit handlers run in reverse order of registration, so the driver, whose
// handler stops the device, must exist before this is called.
void end_groups_at_exit() {
  static const int registered = std::atexit([] {
    if (orDriverIsUsable() != 0 && platform::threads_run_during_exit()) {
      ProgressEngine::end_all(kLongestExit);
    }
  });
  (void)registered;  // If registration fails, the process ends with threads running.
}

std::string global_ranks(c10d::Backend& transport) {
  std::string text = "[";
  const std::vector<uint64_t>& ranks = global_ranks_of(transport);
  for (size_t rank = 0; rank < static_cast<size_t>(transport.getSize()); ++rank) {
    text += (rank == 0 ? "" : ", ") + std::to_string(rank < ranks.size() ? ranks[rank] : rank);
  }
  return text + "]";
}

}  // namespace

ProcessGroup::ProcessGroup(c10::intrusive_ptr<c10d::Backend> transport, std::chrono::milliseconds timeout,
                           bool copies_operands, std::string token)
    : Backend(transport->getRank(), transport->getSize()),
      transport_(std::move(transport)),
      copies_operands_(copies_operands),
      token_(std::move(token)),
      number_(next_number()),
      global_rank_(global_rank(*transport_)),
      ranks_(global_ranks(*transport_)),
      progress_(ProgressEngine::create(rank_, size_, control_channel_over(*transport_),
                                       [rank = global_rank_] { write_trace(rank); })),
      timeout_(timeout),
      comm_streams_(copies_operands ? kLikeOthers : kUrgent) {
  runtime::ensure_initialized();
  end_groups_at_exit();
}

ProcessGroup::~ProcessGroup() {
  if (orDriverIsUsable() == 0) {
    // In a forked child and after the exit handlers, the threads of the group and of the transport do not exist, so
    // waiting for them would block forever. The transport is leaked.
    (void)transport_.release();
    return;
  }
  progress_->close();
  if (progress_->outstanding() == 0) {
    progress_->wait_closed();
    progress_->drop_returned();
    return;
  }
  progress_->drop_returned();
  // The transport's destructor joins its threads, so it must not run on one of them.
  try {
    Threads::instance().start([progress = progress_, transport = transport_]() mutable {
      progress->wait_closed();
      progress->drop_returned();
      transport.reset();
    });
  } catch (const std::exception&) {
    // Without the thread nothing waits for the operations, which use the transport. It is leaked.
    (void)transport_.release();
  }
}

void ProcessGroup::setTimeout(std::chrono::milliseconds timeout) {
  const std::lock_guard<std::mutex> lock(mutex_);
  timeout_ = timeout;
  transport_->setTimeout(timeout);
}

uint64_t ProcessGroup::getSequenceNumberForGroup() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return sequence_;
}

c10d::ErrorType ProcessGroup::getError() {
  return progress_->failure().empty() ? c10d::ErrorType::SUCCESS : c10d::ErrorType::COMM_ERROR;
}

c10::intrusive_ptr<c10d::Backend> ProcessGroup::split(const c10::intrusive_ptr<c10d::Store>& store,
                                                      const std::vector<int>& ranks,
                                                      const c10::intrusive_ptr<Options>& options) {
  // PyTorch also splits the group's Gloo backend for the CPU with this store, which uses the same keys as the
  // transport.
  const auto own_store = c10::make_intrusive<c10d::PrefixStore>("occl/" + token_, store);
  const auto part = transport_->split(own_store, ranks, options);
  if (part == nullptr) {
    return nullptr;  // This rank is in none of the parts.
  }
  return c10::make_intrusive<ProcessGroup>(part, options->timeout, copies_operands_, token_);
}

void ProcessGroup::abort() {
  progress_->abort("the group was aborted; make a new one with init_process_group()");
}

void ProcessGroup::shutdown() {
  progress_->wait_idle();
  progress_->drop_returned();
  progress_->shut_down("the group was shut down; make a new one with init_process_group()");
}

void ProcessGroup::waitForPendingWorks() {
  progress_->wait_idle();
  progress_->drop_returned();
}

void ProcessGroup::startCoalescing() {
  const std::lock_guard<std::mutex> lock(mutex_);
  TORCH_CHECK(!coalescing_, where("start_coalescing"),
              ": a block of coalesced calls is open already; end that block first");
  coalescing_ = true;
}

ProcessGroup::WorkPtr ProcessGroup::endCoalescing() {
  const std::lock_guard<std::mutex> lock(mutex_);
  TORCH_CHECK(coalescing_, where("end_coalescing"), ": no block of coalesced calls is open; begin one first");
  coalescing_ = false;
  return c10::make_intrusive<CoalescedWork>(rank_, std::exchange(coalesced_, {}));
}

void ProcessGroup::report_transfer(const CollectiveCall& call, const Tensors& staging, c10::Stream stream) {
  if (!runtime::Operands::wanted()) {
    return;
  }
  runtime::Operands accessed;
  for (const at::Tensor& tensor : call.inputs) {
    accessed.add(tensor, orAccessRead);
  }
  for (const at::Tensor& tensor : call.type == c10d::OpType::SEND ? Tensors() : call.outputs) {
    accessed.add(tensor, orAccessWrite);
  }
  for (const at::Tensor& tensor : staging) {
    accessed.add(tensor, orAccessReadWrite);
  }
  runtime::report_access(call.name, stream, accessed);
}

ProcessGroup::WorkPtr ProcessGroup::enqueue(CollectiveCall call, const std::function<StreamSteps()>& before) {
  progress_->drop_returned();
  const std::string failure = progress_->failure();
  if (!failure.empty()) {
    C10_THROW_ERROR(DistBackendError, where(call.name) + ": " + failure);
  }
  const Tensors operands = call.operands();
  const c10::Device device = check_operands(call, operands);
  const c10::Stream caller = runtime::current_stream(device.index());
  if (runtime::is_capturing(caller)) {
    TORCH_CHECK(false, where(call.name), ": this call cannot be captured in a graph of ", device,
                ", because its messages are not work of the device; make it outside of the capture");
  }
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  std::shared_ptr<void> stack = calling_stack();  // Takes the GIL, so it comes before `mutex_`.

  const runtime::LaunchContextGuard context;  // Takes the GIL as well.

  std::unique_lock<std::mutex> order(mutex_);
  PooledCommStream& stream = comm_streams_.next(device.index(), call.key);
  std::unique_lock<std::mutex> turn(stream.mutex);
  const c10::StreamGuard guard(stream.stream);
  runtime::Event begin;
  begin.record(caller);
  begin.block(stream.stream);
  StreamSteps steps = before();

  auto retained = std::make_shared<RetainedTensors>();
  // The memory that the transport uses. If it uses copies, the operands are not retained: when the transport releases
  // them depends on real time, and releasing memory that several streams have used enqueues tasks on these streams,
  // which would change the order of a seeded schedule.
  if (!copies_operands_) {
    retained->tensors = operands;
  }
  for (const at::Tensor& tensor : operands) {
    // If the tensor is freed, its memory is not reused before the communication stream has reached this point.
    runtime::device_allocator().recordStream(tensor.storage().data_ptr(), stream.stream);
  }
  retained->tensors.insert(retained->tensors.end(), steps.staging.begin(), steps.staging.end());
  std::shared_ptr<FlightRecord> flight = record(call, std::move(stack));
  const auto operation = std::make_shared<Operation>(
      describe(call, operands), signature_of(call), flight,
      post_all(*transport_, progress_, std::move(steps.transfers), call.key.is_message()), std::move(retained));
  operation->set_fault(next_fault(device));
  // What has failed until here concerns this rank alone. From here on, the stream needs a signal, and the other ranks
  // expect the number of the call.
  std::unique_ptr<StreamWait> stream_wait;
  OPENREG_CHECK(stream.comm_stream.enqueue_semaphore_wait(stream_wait));
  operation->set_stream_wait(std::move(stream_wait));
  count(call);
  try {
    report_transfer(call, steps.staging, stream.stream);
    flight_recorder().add(std::move(flight));
    progress_->submit(operation, call.key.queue());
  } catch (const std::exception& error) {
    order.unlock();
    progress_->fail(operation, "it could not be started: " + first_paragraph(error.what()));
    C10_THROW_ERROR(DistBackendError, operation->reason());
  }
  order.unlock();

  runtime::Event end;
  try {
    if (steps.after) {
      steps.after();
    }
    end.record(stream.stream);
  } catch (const std::exception& error) {
    progress_->fail(operation, "the work that follows it could not be enqueued: " + first_paragraph(error.what()));
    throw;
  }
  auto future = complete_future(call.results(), device);
  auto work = c10::make_intrusive<Work>(rank_, call.type, device, progress_, operation, std::move(end), call.results(),
                                        std::move(future));
  turn.unlock();  // A thread that holds `mutex_` may wait for the stream.
  order.lock();
  if (coalescing_) {
    coalesced_.push_back(work);
  }
  return work;
}

std::chrono::milliseconds ProcessGroup::limit(std::chrono::milliseconds timeout) const {
  if (timeout == c10d::kUnsetTimeout) {
    timeout = timeout_;
  }
  return timeout <= kNoTimeout ? kLongestTimeout : std::min<std::chrono::milliseconds>(timeout, kLongestTimeout);
}

}  // namespace openreg::distributed
