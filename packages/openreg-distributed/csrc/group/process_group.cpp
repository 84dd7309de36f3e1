// SPDX-License-Identifier: BSD-3-Clause
// The life of a group, and how a call gets onto a lane. What is refused and what is told of a call stands in calls.cpp,
// what it moves in reductions.cpp, movers.cpp and point_to_point.cpp.
#include "process_group.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <utility>

#include "faults.h"
#include "openreg/runtime/allocator.h"
#include "openreg/runtime/capture.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/stream.h"
#include "progress/platform.h"
#include "progress/threads.h"
#include "trace.h"
#include "transport/transport_control_channel.h"
#include "work.h"

namespace openreg::distributed {

namespace {

constexpr std::chrono::hours kLongestTimeout{24 * 365};
// That the exit of a process waits for the threads of groups that it has not destroyed.
constexpr std::chrono::seconds kLongestExit{1};
// The highest, for what lanes enqueue is short and peers wait for it.
constexpr int kUrgent = std::numeric_limits<int>::min();
// Where a seed decides, it decides between a lane and the program's own streams, too.
constexpr int kLikeOthers = 0;

// Operands and staging.
struct Held {
  std::vector<at::Tensor> tensors;
};

c10::intrusive_ptr<c10::ivalue::Future> complete_future(const std::vector<at::Tensor>& results, c10::Device device) {
  auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                         std::vector<c10::Device>{device});
  future->markCompleted(at::IValue(results));  // records events on the current streams
  return future;
}

std::shared_ptr<PeerLink> link_over(c10d::Backend& transport) {
  return transport.getSize() > 1 ? std::make_shared<ControlLink>(transport) : nullptr;
}

int64_t next_number() {
  static std::atomic<int64_t> next{0};
  return next++;
}

const std::vector<uint64_t>& global_ranks_of(c10d::Backend& transport) {
  return transport.getBackendOptions()->global_ranks_in_group;
}

int global_rank(c10d::Backend& transport) {
  const std::vector<uint64_t>& ranks = global_ranks_of(transport);
  const auto rank = static_cast<size_t>(transport.getRank());
  return static_cast<int>(rank < ranks.size() ? ranks[rank] : rank);
}

// Exit handlers run in the opposite order of their registration. The driver, which stops the device in its own, must
// have been made before.
void end_groups_at_exit() {
  static const int registered = std::atexit([] {
    if (orDriverIsUsable() != 0 && platform::threads_run_during_exit()) {
      Progress::end_all(kLongestExit);
    }
  });
  (void)registered;  // where the system refuses, threads are left to the end of the process
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
      progress_(Progress::create(rank_, size_, link_over(*transport_), [rank = global_rank_] { write_trace(rank); })),
      timeout_(timeout),
      lanes_(copies_operands ? kLikeOthers : kUrgent) {
  runtime::ensure_initialized();
  end_groups_at_exit();
}

ProcessGroup::~ProcessGroup() {
  if (orDriverIsUsable() == 0) {
    // In a forked child and after the exit handlers no thread of the group or of the transport runs, and whoever waits
    // for one waits for ever. What is left goes with the process.
    (void)transport_.release();
    return;
  }
  progress_->close();
  if (progress_->outstanding() == 0) {
    progress_->wait_closed();
    return;
  }
  // The transport's destructor waits for its threads, and may run on none of them.
  Threads::instance().start([progress = progress_, transport = std::move(transport_)]() mutable {
    progress->wait_closed();
    transport.reset();
  });
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
  // Gloo for the CPU is split with the same store, and its keys are those of our transport.
  const auto own_store = c10::make_intrusive<c10d::PrefixStore>("occl/" + token_, store);
  const auto part = transport_->split(own_store, ranks, options);
  if (part == nullptr) {
    return nullptr;  // this rank is in no part
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
  TORCH_CHECK(!coalescing_, where("start_coalescing"), ": a block of coalesced calls is open already; end that first");
  coalescing_ = true;
}

ProcessGroup::WorkPtr ProcessGroup::endCoalescing() {
  const std::lock_guard<std::mutex> lock(mutex_);
  TORCH_CHECK(coalescing_, where("end_coalescing"), ": no block of coalesced calls is open");
  coalescing_ = false;
  return c10::make_intrusive<CoalescedWork>(rank_, std::exchange(coalesced_, {}));
}

ProcessGroup::WorkPtr ProcessGroup::enqueue(Call call, const std::function<Steps()>& before) {
  progress_->drop_returned();
  const std::string failure = progress_->failure();
  if (!failure.empty()) {
    C10_THROW_ERROR(DistBackendError, where(call.name) + ": " + failure);
  }
  const Tensors operands = call.operands();
  const c10::Device device = check_operands(call, operands);
  const c10::Stream caller = runtime::current_stream(device.index());
  if (runtime::is_capturing(caller)) {
    TORCH_CHECK(false, where(call.name), ": cannot be recorded in a graph of ", device,
                ", for its messages are not work of the device; call it outside of the capture");
  }
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  std::shared_ptr<void> stack = calling_stack();  // with Python's lock, so before ours

  std::unique_lock<std::mutex> order(mutex_);
  DeviceLane& lane = lanes_.next(device.index(), call.route);
  const std::lock_guard<std::mutex> turn(lane.mutex);
  const c10::StreamGuard guard(lane.stream);
  runtime::Event begin;
  begin.record(caller);
  begin.block(lane.stream);
  Steps steps = before();

  auto held = std::make_shared<Held>();
  // What the transport works on. Not the operands where it has copies: when it lets go depends on real time, and the
  // end of memory that several streams have used is work of these streams, which a seed would then order in another
  // way.
  if (!copies_operands_) {
    held->tensors = operands;
  }
  for (const at::Tensor& tensor : operands) {
    // Freed while it is still used, the memory is not handed out before the lane has come to its end.
    runtime::device_allocator().recordStream(tensor.storage().data_ptr(), lane.stream);
  }
  held->tensors.insert(held->tensors.end(), steps.staging.begin(), steps.staging.end());
  // First what may throw: a call that other ranks hear of has a number.
  std::unique_ptr<Ticket> ticket;
  OPENREG_CHECK(lane.lane.hold(ticket));
  Description description = describe(call, operands);
  Terms terms = terms_of(call);
  const auto operation = std::make_shared<Operation>(
      std::move(description), std::move(terms), record(call, std::move(stack)), std::move(ticket),
      post_all(*transport_, progress_, std::move(steps.transfers), call.route.peer != Route::kCollective),
      std::move(held));
  operation->set_injected(next_fault(device));
  progress_->submit(operation, call.route.channel());
  order.unlock();

  runtime::Event end;
  try {
    if (steps.after) {
      steps.after();
    }
    end.record(lane.stream);
  } catch (const std::exception& error) {
    progress_->fail(operation, "what follows it failed: " + first_paragraph(error.what()));
    throw;
  }
  auto future = complete_future(call.results(), device);
  auto work = c10::make_intrusive<Work>(rank_, call.type, device, progress_, operation, std::move(end), call.results(),
                                        std::move(future));
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
