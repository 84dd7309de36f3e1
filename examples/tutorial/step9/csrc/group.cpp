// SPDX-License-Identifier: BSD-3-Clause
#include "group.h"

#include <ATen/core/ivalue.h>
#include <c10/core/StreamGuard.h>

#include <utility>

#include "launch.h"
#include "queue.h"

namespace pocket {

namespace {

Tensors host_views(const Tensors& tensors) {
  Tensors views;
  for (const at::Tensor& tensor : tensors) {
    views.push_back(host_view(tensor));
  }
  return views;
}

// Gloo has sums and no averages.
struct Reduction {
  c10d::ReduceOp op;
  bool averages;

  explicit Reduction(const c10d::ReduceOp& asked)
      : op(asked == c10d::ReduceOp::AVG ? c10d::ReduceOp(c10d::ReduceOp::SUM) : asked),
        averages(asked == c10d::ReduceOp::AVG) {}

  void finish(at::Tensor& result, int size) const {
    if (averages) {
      result.div_(size);
    }
  }
};

}  // namespace

Work::Work(int rank, c10d::OpType type, c10::Device device, c10::Event done, Tensors outputs,
           c10::intrusive_ptr<c10::ivalue::Future> future)
    : c10d::Work(rank, type),
      device_(device),
      done_(std::move(done)),
      outputs_(std::move(outputs)),
      future_(std::move(future)) {}

void Work::synchronize() {
  done_.block(current_stream(device_.index()));
}

bool Work::wait(std::chrono::milliseconds /*timeout*/) {
  synchronize();
  if (opType_ == c10d::OpType::BARRIER) {
    queue_of(current_stream(device_.index())).synchronize();
  }
  return true;
}

Group::Group(c10::intrusive_ptr<c10d::Backend> transport)
    : Backend(transport->getRank(), transport->getSize()), transport_(std::move(transport)) {}

WorkPtr Group::enqueue(c10d::OpType type, c10::Device device, const Tensors& operands, const Tensors& outputs,
                       std::function<void(c10d::Backend&)> call) {
  for (const at::Tensor& tensor : operands) {
    TORCH_CHECK(tensor.device() == device, "pccl: tensors are on ", device, " and on ", tensor.device(),
                "; all of one call have to be on one device");
    TORCH_CHECK(tensor.is_contiguous(), "pccl: a tensor on ", device, " has gaps; call .contiguous() first");
  }
  std::optional<c10::Stream>& stream = streams_.at(device.index());
  if (!stream) {
    stream = new_stream(device.index());
  }
  c10::Event before(kType);
  before.record(current_stream(device.index()));
  before.block(*stream);
  queue_of(*stream).push([transport = transport_, call = std::move(call)] { call(*transport); });
  c10::Event done(kType);
  done.record(*stream);

  auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                         std::vector<c10::Device>{device});
  const c10::StreamGuard guard(*stream);  // a completed future records events on the current streams
  future->markCompleted(at::IValue(outputs));
  return c10::make_intrusive<Work>(rank_, type, device, std::move(done), outputs, std::move(future));
}

WorkPtr Group::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  return enqueue(c10d::OpType::BROADCAST, tensors.at(0).device(), tensors, tensors,
                 [views = host_views(tensors), options](c10d::Backend& transport) mutable {
                   transport.broadcast(views, options)->wait();
                 });
}

WorkPtr Group::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  return enqueue(c10d::OpType::ALLREDUCE, tensors.at(0).device(), tensors, tensors,
                 [views = host_views(tensors), reduction = Reduction(options.reduceOp),
                  sent = options](c10d::Backend& transport) mutable {
                   sent.reduceOp = reduction.op;
                   transport.allreduce(views, sent)->wait();
                   reduction.finish(views[0], transport.getSize());
                 });
}

WorkPtr Group::allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  Tensors operands = outputs.at(0);
  operands.push_back(inputs.at(0));
  return enqueue(c10d::OpType::ALLGATHER, inputs[0].device(), operands, outputs[0],
                 [to = std::vector<Tensors>{host_views(outputs[0])}, from = host_views(inputs),
                  options](c10d::Backend& transport) mutable { transport.allgather(to, from, options)->wait(); });
}

WorkPtr Group::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) {
  return enqueue(c10d::OpType::_ALLGATHER_BASE, input.device(), {output, input}, {output},
                 [to = host_view(output), from = host_view(input), options](c10d::Backend& transport) mutable {
                   transport._allgather_base(to, from, options)->wait();
                 });
}

WorkPtr Group::_reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
  return enqueue(c10d::OpType::_REDUCE_SCATTER_BASE, input.device(), {output, input}, {output},
                 [to = host_view(output), from = host_view(input), reduction = Reduction(options.reduceOp),
                  sent = options](c10d::Backend& transport) mutable {
                   sent.reduceOp = reduction.op;
                   transport._reduce_scatter_base(to, from, sent)->wait();
                   reduction.finish(to, transport.getSize());
                 });
}

WorkPtr Group::barrier(const c10d::BarrierOptions& options) {
  const c10::Device device(kType, current_device());
  return enqueue(c10d::OpType::BARRIER, device, {}, {},
                 [options](c10d::Backend& transport) mutable { transport.barrier(options)->wait(); });
}

}  // namespace pocket
