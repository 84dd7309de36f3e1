// SPDX-License-Identifier: BSD-3-Clause
// The life of a group, and how a call gets onto a lane. What each call moves stands in reductions.cpp, movers.cpp and
// point_to_point.cpp.
#include "process_group.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <thread>
#include <utility>

#include "control_link.h"
#include "openreg/runtime/allocator.h"
#include "openreg/runtime/capture.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/stream.h"
#include "work.h"

namespace openreg::distributed {

namespace {

constexpr std::chrono::hours kLongestTimeout{24 * 365};

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

std::shared_ptr<Link> link_over(c10d::Backend& transport) {
  return transport.getSize() > 1 ? std::make_shared<ControlLink>(transport) : nullptr;
}

}  // namespace

ProcessGroup::ProcessGroup(c10::intrusive_ptr<c10d::Backend> transport, std::chrono::milliseconds timeout,
                           bool copies_operands, std::string token)
    : Backend(transport->getRank(), transport->getSize()),
      transport_(std::move(transport)),
      copies_operands_(copies_operands),
      token_(std::move(token)),
      progress_(Progress::create(rank_, size_, link_over(*transport_))),
      timeout_(timeout) {
  runtime::ensure_initialized();
}

ProcessGroup::~ProcessGroup() {
  progress_->close();
  if (progress_->outstanding() == 0) {
    progress_->wait_closed();
    return;
  }
  // The transport's destructor waits for its threads, and may run on none of them.
  std::thread([progress = progress_, transport = std::move(transport_)]() mutable {
    progress->wait_closed();
    transport.reset();
  }).detach();
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
  const c10::Device device = check_operands(call);
  const c10::Stream caller = runtime::current_stream(device.index());
  if (runtime::is_capturing(caller)) {
    TORCH_CHECK(false, where(call.name), ": cannot be recorded in a graph of ", device,
                ", for its messages are not work of the device; call it outside of the capture");
  }
  const at::AutoDispatchBelowADInplaceOrView no_autograd;

  std::unique_lock<std::mutex> order(mutex_);
  DeviceLane& lane = lanes_.next(device.index(), call.route);
  const std::lock_guard<std::mutex> turn(lane.mutex);
  const c10::StreamGuard guard(lane.stream);
  runtime::Event begin;
  begin.record(caller);
  begin.block(lane.stream);
  Steps steps = before();

  auto held = std::make_shared<Held>();
  held->tensors = call.operands;
  for (const at::Tensor& tensor : call.operands) {
    // Freed while the transport still uses it, the memory is not handed out before the lane has come to its end.
    runtime::device_allocator().recordStream(tensor.storage().data_ptr(), lane.stream);
  }
  held->tensors.insert(held->tensors.end(), steps.staging.begin(), steps.staging.end());
  // First what may throw: a call that other ranks hear of has a number.
  std::unique_ptr<Ticket> ticket = lane.lane.hold();
  const auto operation = std::make_shared<Operation>(
      describe(call), terms_of(call), limit(call.timeout), std::move(ticket),
      post_all(*transport_, progress_, std::move(steps.transfers), call.route.peer != Route::kCollective),
      std::move(held));
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
  auto future = complete_future(call.results, device);
  auto work = c10::make_intrusive<Work>(rank_, call.type, device, progress_, operation, std::move(end),
                                        std::move(call.results), std::move(future));
  order.lock();
  if (coalescing_) {
    coalesced_.push_back(work);
  }
  return work;
}

std::string ProcessGroup::place_of() const {
  const std::string& description = getGroupDesc();
  const std::string& group = description.empty() || description == "undefined" ? getGroupUid() : description;
  return "rank " + std::to_string(rank_) + " of " + std::to_string(size_) + " in the group '" + group + "'";
}

std::string ProcessGroup::where(const char* name) const {
  return std::string("occl: ") + name + " on " + place_of();
}

Description ProcessGroup::describe(const Call& call) {
  Description description;
  description.name = call.name;
  description.sequence = ++sequence_;
  description.tensors = call.operands.size();
  if (!call.operands.empty()) {
    description.dtype = c10::getDtypeNames(call.operands.front().scalar_type()).first;
    description.sizes = call.operands.front().sizes().vec();
  }
  for (const at::Tensor& tensor : call.operands) {
    description.bytes += tensor.nbytes();
  }
  description.reduction = call.agreed.reduction;
  description.root = call.agreed.root;
  description.peer = call.route.peer;
  std::string place = place_of();
  if (place_ == nullptr || *place_ != place) {
    place_ = std::make_shared<const std::string>(std::move(place));
  }
  description.group = place_;
  return description;
}

Terms ProcessGroup::terms_of(const Call& call) {
  Terms terms;
  terms.sent = call.agreed.sent;
  terms.expected = call.agreed.expected;
  terms.peer = call.route.peer;
  terms.tag = call.route.tag;
  if (call.route.peer == Route::kCollective) {
    terms.number = collectives_++;
    terms.contract = call.agreed.contract(
        call.operands.empty() ? std::string() : c10::getDtypeNames(call.operands.front().scalar_type()).first);
  } else {
    terms.kind = call.route.receives ? Terms::Kind::kReceive : Terms::Kind::kSend;
  }
  return terms;
}

c10::Device ProcessGroup::check_operands(const Call& call) const {
  if (call.operands.empty()) {
    return *call.device;
  }
  const c10::Device device = call.operands.front().device();
  for (const at::Tensor& tensor : call.operands) {
    TORCH_CHECK(tensor.device().type() == runtime::kDeviceType, where(call.name), ": a tensor is on ", tensor.device(),
                "; move it with .to('openreg'), or make the group with backend 'cpu:gloo,openreg:occl'");
    TORCH_CHECK(tensor.device() == device, where(call.name), ": tensors are on ", device, " and on ", tensor.device(),
                "; all of one call have to be on one device");
    TORCH_CHECK(tensor.layout() == c10::kStrided, where(call.name), ": a tensor on ", device, " has the layout ",
                tensor.layout(), "; convert it with .to_dense()");
    TORCH_CHECK_TYPE(tensor.scalar_type() == call.operands.front().scalar_type(), where(call.name),
                     ": tensors are of dtype ", call.operands.front().scalar_type(), " and of ", tensor.scalar_type(),
                     "; all of one call have to be of one dtype");
  }
  TORCH_CHECK(!bound_device_id_ || *bound_device_id_ == device, where(call.name), ": a tensor is on ", device,
              ", but the group was made for ", *bound_device_id_,
              " (device_id of init_process_group); move the tensor");
  return device;
}

void ProcessGroup::check_peer(const char* name, int peer) const {
  TORCH_CHECK_VALUE(peer >= 0 && peer < size_, where(name), ": rank ", peer,
                    " is not in the group; give one from 0 to ", size_ - 1);
}

void ProcessGroup::check_message(const char* name, const Tensors& tensors, int peer, int tag) const {
  TORCH_CHECK(tensors.size() == 1, where(name), ": takes one tensor, got ", tensors.size());
  TORCH_CHECK_VALUE(tag >= 0 && tag < ControlLink::kTag, where(name), ": the tag is ", tag, "; give one from 0 to ",
                    ControlLink::kTag - 1);
  if (peer != Route::kAnySource) {
    check_peer(name, peer);
    TORCH_CHECK_VALUE(peer != rank_, where(name), ": rank ", peer, " is this rank itself; copy the tensor instead");
  }
}

std::chrono::milliseconds ProcessGroup::limit(std::chrono::milliseconds timeout) const {
  if (timeout == c10d::kUnsetTimeout) {
    timeout = timeout_;
  }
  return timeout <= kNoTimeout ? kLongestTimeout : std::min<std::chrono::milliseconds>(timeout, kLongestTimeout);
}

}  // namespace openreg::distributed
