// SPDX-License-Identifier: BSD-3-Clause
// The process group: torch.distributed on tensors of the device.
#pragma once

#include <c10/core/Event.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <functional>
#include <optional>
#include <vector>

#include "device.h"

namespace pocket {

using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// The object that a collective returns. Only wait() of a barrier blocks the host.
class Work final : public c10d::Work {
 public:
  // `done` was recorded after the collective; `future` is complete in the order of the stream.
  Work(int rank, c10d::OpType type, c10::Device device, c10::Event done, Tensors outputs,
       c10::intrusive_ptr<c10::ivalue::Future> future);

  bool isCompleted() override { return done_.query(); }
  bool isSuccess() const override { return done_.query(); }
  Tensors result() override { return outputs_; }
  // Makes the current stream of the calling thread wait for the collective.
  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout) override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  const c10::Device device_;
  c10::Event done_;
  const Tensors outputs_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// Runs each collective as a task on a stream of its own, which waits for the stream that was current. The task passes
// views of the memory to another backend, which does the work.
class Group final : public c10d::Backend {
 public:
  // `transport` is a group for tensors of the CPU, with the same processes. Only this group may use it.
  explicit Group(c10::intrusive_ptr<c10d::Backend> transport);

  const std::string getBackendName() const override { return "pccl"; }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;

 private:
  // Enqueues `call`, which uses the operands; the outputs are among them. It runs on the thread of the stream.
  WorkPtr enqueue(c10d::OpType type, c10::Device device, const Tensors& operands, const Tensors& outputs,
                  std::function<void(c10d::Backend&)> call);

  const c10::intrusive_ptr<c10d::Backend> transport_;
  std::vector<std::optional<c10::Stream>> streams_{static_cast<size_t>(device_count())};
};

}  // namespace pocket
