// SPDX-License-Identifier: BSD-3-Clause
// The collectives with arithmetic. The transport calculates in all_reduce and reduce. In reduce_scatter it only moves
// data, and the device calculates.
#include <ATen/ops/empty.h>

#include "group/process_group.h"
#include "transport/flat_buffer.h"
#include "transport/host_memory.h"
#include "transport/wire_format.h"

namespace openreg::distributed {

namespace {

using Tensors = ProcessGroup::Tensors;

// Returns, for each tensor, a list with one part for each rank.
std::vector<Tensors> parts_by_rank(const Tensors& tensors, int ranks) {
  std::vector<Tensors> all;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor rows = tensor.reshape({ranks, tensor.numel() / ranks});
    Tensors& parts = all.emplace_back();
    for (int rank = 0; rank < ranks; ++rank) {
      parts.push_back(rows.select(0, rank));
    }
  }
  return all;
}

}  // namespace

ProcessGroup::WorkPtr ProcessGroup::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  TORCH_CHECK(tensors.size() == 1, where("all_reduce"), ": expected one tensor, but got ", tensors.size());
  return reduce_all("all_reduce", c10d::OpType::ALLREDUCE, tensors, options);
}

ProcessGroup::WorkPtr ProcessGroup::allreduce_coalesced(Tensors& tensors,
                                                        const c10d::AllreduceCoalescedOptions& options) {
  TORCH_CHECK(!tensors.empty(), where("all_reduce_coalesced"), ": expected at least one tensor");
  return reduce_all("all_reduce_coalesced", c10d::OpType::ALLREDUCE_COALESCED, tensors, options);
}

ProcessGroup::WorkPtr ProcessGroup::reduce_all(const char* name, c10d::OpType type, const Tensors& tensors,
                                               const c10d::AllreduceOptions& options) {
  const WireFormat wire(where(name), options.reduceOp, tensors[0].scalar_type(), size_);
  CollectiveFingerprint fingerprint = CollectiveFingerprint::alike("all_reduce", tensors);
  fingerprint.reduction = wire.name();
  return enqueue({name, type, tensors, tensors, options.timeout, std::move(fingerprint)}, [&] {
    StreamSteps steps;
    for (const at::Tensor& tensor : tensors) {
      if (tensor.numel() == 0) {
        continue;
      }
      const at::Tensor values = wire.encode(tensor, copies_operands_);
      steps.staging.push_back(values);
      c10d::AllreduceOptions sent;
      sent.reduceOp = c10d::ReduceOp(wire.operation());
      sent.timeout = transport_limit(limit(options.timeout));
      steps.transfers.emplace_back(
          [host = Tensors{host_view(values)}, sent](c10d::Backend& transport, const Operation& /*operation*/) mutable {
            return transport.allreduce(host, sent);
          });
    }
    steps.after = [&wire, &tensors, staging = steps.staging] {
      size_t next = 0;
      for (const at::Tensor& tensor : tensors) {
        if (tensor.numel() != 0) {
          wire.decode(staging[next++], tensor);
        }
      }
    };
    return steps;
  });
}

ProcessGroup::WorkPtr ProcessGroup::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  TORCH_CHECK(tensors.size() == 1, where("reduce"), ": expected one tensor, but got ", tensors.size());
  check_peer("reduce", static_cast<int>(options.rootRank));
  const at::Tensor tensor = tensors[0];
  const WireFormat wire(where("reduce"), options.reduceOp, tensor.scalar_type(), size_);
  CollectiveFingerprint fingerprint = CollectiveFingerprint::alike("reduce", tensors);
  fingerprint.reduction = wire.name();
  fingerprint.root = static_cast<int>(options.rootRank);
  return enqueue({"reduce", c10d::OpType::REDUCE, tensors, tensors, options.timeout, std::move(fingerprint)},
                 [&]() -> StreamSteps {
                   if (tensor.numel() == 0) {
                     return {};
                   }
                   const bool is_root = options.rootRank == rank_;
                   // On the other ranks, the transport uses the input as scratch memory.
                   const at::Tensor values = wire.encode(tensor, !is_root || copies_operands_);
                   c10d::ReduceOptions sent;
                   sent.reduceOp = c10d::ReduceOp(wire.operation());
                   sent.rootRank = options.rootRank;
                   sent.timeout = transport_limit(limit(options.timeout));
                   const auto transfer = [host = Tensors{host_view(values)}, sent](
                                             c10d::Backend& transport, const Operation& /*operation*/) mutable {
                     return transport.reduce(host, sent);
                   };
                   return {{transfer},
                           is_root ? [&wire, values, tensor] { wire.decode(values, tensor); } : std::function<void()>(),
                           {values}};
                 });
}

ProcessGroup::WorkPtr ProcessGroup::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                                   const c10d::ReduceScatterOptions& options) {
  const char* name = "reduce_scatter";
  TORCH_CHECK(outputs.size() == 1 && inputs.size() == 1, where(name), ": expected one output and one list of inputs");
  TORCH_CHECK_VALUE(inputs[0].size() == static_cast<size_t>(size_), where(name), ": got ", inputs[0].size(),
                    " inputs; give one for each of the ", size_, " ranks");
  TORCH_CHECK_VALUE(inputs[0][rank_].numel() == outputs[0].numel(), where(name), ": the output has ",
                    outputs[0].numel(), " elements and the input of this rank ", inputs[0][rank_].numel(),
                    "; give them the same size");
  CollectiveFingerprint fingerprint = CollectiveFingerprint::by_rank("reduce_scatter", inputs[0], {});
  fingerprint.expected = {outputs[0].nbytes()};
  return reduce_chunks(
      {name, c10d::OpType::REDUCE_SCATTER, inputs[0], outputs, options.timeout, std::move(fingerprint)},
      options.reduceOp, [&] { return inputs; });
}

ProcessGroup::WorkPtr ProcessGroup::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                         const c10d::ReduceScatterOptions& options) {
  Tensors outputs{output};
  Tensors inputs{input};
  return reduce_scatter_tensor_coalesced(outputs, inputs, options);
}

ProcessGroup::WorkPtr ProcessGroup::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                                    const c10d::ReduceScatterOptions& options) {
  const char* name = "reduce_scatter_tensor";
  TORCH_CHECK(!outputs.empty() && outputs.size() == inputs.size(), where(name), ": got ", outputs.size(),
              " outputs and ", inputs.size(), " inputs; give as many of each, and at least one");
  for (size_t i = 0; i < inputs.size(); ++i) {
    TORCH_CHECK_VALUE(inputs[i].numel() == outputs[i].numel() * size_, where(name), ": an input has ",
                      inputs[i].numel(), " elements and its output ", outputs[i].numel(), "; the input needs ", size_,
                      " times as many, one part for each rank");
  }
  return reduce_chunks({name, c10d::OpType::_REDUCE_SCATTER_BASE, inputs, outputs, options.timeout,
                        CollectiveFingerprint::alike("reduce_scatter", outputs)},
                       options.reduceOp, [&] { return parts_by_rank(inputs, size_); });
}

ProcessGroup::WorkPtr ProcessGroup::reduce_chunks(CollectiveCall call, const c10d::ReduceOp& operation,
                                                  const std::function<std::vector<Tensors>()>& chunks_on_stream) {
  const Tensors outputs = call.outputs;
  const std::chrono::milliseconds timeout = call.timeout;
  const WireFormat wire(where(call.name), operation, outputs[0].scalar_type(), size_);
  call.fingerprint.reduction = wire.name();
  return enqueue(std::move(call), [&] {
    const std::vector<Tensors> chunks = chunks_on_stream();
    StreamSteps steps;
    std::vector<at::Tensor> received(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      Tensors pieces;
      std::vector<int64_t> sent_bytes;
      for (const at::Tensor& chunk : chunks[i]) {
        pieces.push_back(wire.encode(chunk, false).reshape({-1}));
        sent_bytes.push_back(static_cast<int64_t>(pieces.back().nbytes()));
      }
      const at::Tensor flat = flatten(pieces, copies_operands_);
      received[i] = at::empty({size_, pieces[rank_].numel()}, pieces[rank_].options());
      std::vector<int64_t> received_bytes(static_cast<size_t>(size_), sent_bytes[rank_]);
      steps.staging.insert(steps.staging.end(), {flat, received[i]});
      c10d::AllToAllOptions sent;
      sent.timeout = transport_limit(limit(timeout));
      steps.transfers.emplace_back([in = host_bytes(flat), out = host_bytes(received[i]), sent_bytes, received_bytes,
                                    sent](c10d::Backend& transport, const Operation& /*operation*/) mutable {
        return transport.alltoall_base(out, in, received_bytes, sent_bytes, sent);
      });
    }
    steps.after = [&wire, &outputs, received] {
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i].numel() != 0) {
          wire.decode(wire.reduce(received[i]), outputs[i]);
        }
      }
    };
    return steps;
  });
}

}  // namespace openreg::distributed
