// SPDX-License-Identifier: BSD-3-Clause
#include "group/work.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "openreg/runtime/stream.h"

namespace openreg::distributed {

Work::Work(int rank, c10d::OpType type, c10::Device device, std::shared_ptr<ProgressEngine> progress,
           std::shared_ptr<Operation> operation, runtime::Event end, std::vector<at::Tensor> outputs,
           c10::intrusive_ptr<c10::ivalue::Future> future)
    : c10d::Work(rank, type),
      device_(device),
      progress_(std::move(progress)),
      operation_(std::move(operation)),
      end_(std::move(end)),
      outputs_(std::move(outputs)),
      future_(std::move(future)) {}

bool Work::isCompleted() {
  // The query comes first, because in a seeded schedule it makes the tasks before the operation run.
  const bool ended = end_.query_for_release();
  const OperationStatus status = operation_->status();
  return status == OperationStatus::kSuccess ? ended : status != OperationStatus::kPending;
}

bool Work::isSuccess() const {
  return operation_->status() == OperationStatus::kSuccess;
}

std::exception_ptr Work::exception() const {
  const std::string reason = operation_->reason();
  if (reason.empty()) {
    return nullptr;
  }
  return std::make_exception_ptr(c10::DistBackendError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, reason));
}

int Work::sourceRank() const {
  end_.synchronize();
  raise_failure();
  return operation_->source();
}

void Work::synchronize() {
  progress_->drop_returned();
  raise_failure();
  end_.block(runtime::current_stream(device_.index()));
}

bool Work::wait(std::chrono::milliseconds timeout) {
  synchronize();
  if (timeout != kNoTimeout) {
    progress_->limit(operation_, timeout);
  } else if (opType_ != c10d::OpType::BARRIER) {
    return true;
  }
  try {
    end_.synchronize();
  } catch (const c10::Error&) {
    raise_failure();  // Its message names the cause.
    throw;
  }
  raise_failure();
  return true;
}

void Work::abort() {
  progress_->abort("the group was aborted by Work.abort() of " + operation_->description().text() +
                   "; make a new one with init_process_group()");
}

float Work::getDuration() const {
  const int64_t started = operation_->flight().started;
  const int64_t ended = operation_->flight().ended;
  TORCH_CHECK(started != 0 && ended != 0, "occl: get_duration(): the duration of ", operation_->description().text(),
              " is not known before it is over; wait for it first");
  return static_cast<float>(static_cast<double>(ended - started) / 1e6);
}

void Work::raise_failure() const {
  const std::string reason = operation_->reason();
  if (!reason.empty()) {
    C10_THROW_ERROR(DistBackendError, reason);
  }
}

bool CoalescedWork::isCompleted() {
  return std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->isCompleted(); });
}

bool CoalescedWork::isSuccess() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->isSuccess(); });
}

std::exception_ptr CoalescedWork::exception() const {
  for (const auto& part : parts_) {
    if (const std::exception_ptr exception = part->exception()) {
      return exception;
    }
  }
  return nullptr;
}

std::vector<at::Tensor> CoalescedWork::result() {
  std::vector<at::Tensor> all;
  for (const auto& part : parts_) {
    const std::vector<at::Tensor> one = part->result();
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

void CoalescedWork::synchronize() {
  for (const auto& part : parts_) {
    part->synchronize();
  }
}

bool CoalescedWork::wait(std::chrono::milliseconds timeout) {
  for (const auto& part : parts_) {
    part->wait(timeout);
  }
  return true;
}

void CoalescedWork::abort() {
  for (const auto& part : parts_) {
    part->abort();
  }
}

c10::intrusive_ptr<c10::ivalue::Future> CoalescedWork::getFuture() {
  TORCH_CHECK(!parts_.empty(), "occl: get_future(): the block of coalesced calls has no call; make at least one in it");
  return parts_.back()->getFuture();
}

uint64_t CoalescedWork::getSequencenumber() const {
  return parts_.empty() ? 0 : parts_.back()->getSequencenumber();
}

}  // namespace openreg::distributed
