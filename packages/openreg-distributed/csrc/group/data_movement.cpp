// SPDX-License-Identifier: BSD-3-Clause
// The collectives without arithmetic. They move bytes, so they support any dtype.
#include <algorithm>
#include <numeric>

#include "group/process_group.h"
#include "openreg/runtime/device.h"
#include "transport/flat_buffer.h"
#include "transport/host_memory.h"

namespace openreg::distributed {

namespace {

using Tensors = ProcessGroup::Tensors;

// Returns the concatenation of two lists.
Tensors joined(Tensors first, const Tensors& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<int64_t> byte_counts(const Tensors& tensors) {
  std::vector<int64_t> sizes;
  for (const at::Tensor& tensor : tensors) {
    sizes.push_back(static_cast<int64_t>(tensor.nbytes()));
  }
  return sizes;
}

bool have_equal_sizes(const Tensors& tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [&](const at::Tensor& tensor) { return tensor.numel() == tensors[0].numel(); });
}

// Returns a view of no element, at the beginning of a tensor of any strides. It is adjacent to that, so that flatten()
// needs no copy.
at::Tensor empty_view(const at::Tensor& tensor) {
  return tensor.as_strided({0}, {1});
}

// Returns views of consecutive parts of a tensor along its first dimension.
Tensors parts_of(const at::Tensor& tensor, const std::vector<int64_t>& sizes) {
  Tensors parts;
  int64_t offset = 0;
  for (const int64_t size : sizes) {
    parts.push_back(tensor.narrow(0, offset, size));
    offset += size;
  }
  return parts;
}

}  // namespace

ProcessGroup::WorkPtr ProcessGroup::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  TORCH_CHECK(tensors.size() == 1, where("broadcast"), ": expected one tensor, but got ", tensors.size());
  check_peer("broadcast", static_cast<int>(options.rootRank));
  const at::Tensor tensor = tensors[0];
  CollectiveFingerprint fingerprint = CollectiveFingerprint::alike("broadcast", tensors);
  fingerprint.root = static_cast<int>(options.rootRank);
  return enqueue(
      {"broadcast", c10d::OpType::BROADCAST, tensors, tensors, options.timeout, std::move(fingerprint)},
      [&]() -> StreamSteps {
        if (tensor.numel() == 0) {
          return {};
        }
        const Tensors all{tensor};
        const bool is_root = options.rootRank == rank_;
        const at::Tensor flat = is_root ? flatten(all, copies_operands_) : flat_buffer_for(all, copies_operands_);
        c10d::BroadcastOptions sent;
        sent.rootRank = options.rootRank;
        sent.timeout = transport_limit(limit(options.timeout));
        const auto transfer = [bytes = Tensors{host_bytes(flat)}, sent](c10d::Backend& transport,
                                                                        const Operation& /*operation*/) mutable {
          return transport.broadcast(bytes, sent);
        };
        return {{transfer}, is_root ? std::function<void()>() : [=] { unflatten_into(flat, {tensor}); }, {flat}};
      });
}

ProcessGroup::WorkPtr ProcessGroup::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) {
  const char* name = "all_gather";
  TORCH_CHECK(outputs.size() == 1 && inputs.size() == 1, where(name), ": expected one list of outputs and one input");
  TORCH_CHECK_VALUE(outputs[0].size() == static_cast<size_t>(size_), where(name), ": got ", outputs[0].size(),
                    " outputs; give one for each of the ", size_, " ranks");
  TORCH_CHECK_VALUE(outputs[0][rank_].numel() == inputs[0].numel(), where(name), ": the input has ", inputs[0].numel(),
                    " elements and the output for this rank ", outputs[0][rank_].numel(), "; give them the same size");
  if (have_equal_sizes(outputs[0])) {
    return gather_into(name, c10d::OpType::ALLGATHER, inputs, outputs, options.timeout);
  }
  // Each rank broadcasts its part.
  const Tensors& parts = outputs[0];
  CollectiveFingerprint fingerprint = CollectiveFingerprint::by_rank("all_gather of different sizes", inputs, parts);
  return enqueue({name, c10d::OpType::ALLGATHER, inputs, parts, options.timeout, std::move(fingerprint)}, [&] {
    StreamSteps steps;
    std::vector<at::Tensor> buffers;
    for (int rank = 0; rank < size_; ++rank) {
      buffers.push_back(rank == rank_ ? flatten(inputs, copies_operands_)
                                      : flat_buffer_for({parts[rank]}, copies_operands_));
      if (buffers.back().numel() == 0) {
        continue;
      }
      c10d::BroadcastOptions sent;
      sent.rootRank = rank;
      sent.timeout = transport_limit(limit(options.timeout));
      steps.transfers.emplace_back([bytes = Tensors{host_bytes(buffers.back())}, sent](
                                       c10d::Backend& transport, const Operation& /*operation*/) mutable {
        return transport.broadcast(bytes, sent);
      });
    }
    steps.staging = buffers;
    steps.after = [this, buffers, &parts, &inputs] {
      for (int rank = 0; rank < size_; ++rank) {
        if (rank == rank_) {
          parts[rank].copy_(inputs[0].reshape(parts[rank].sizes()));
        } else {
          unflatten_into(buffers[rank], {parts[rank]});
        }
      }
    };
    return steps;
  });
}

ProcessGroup::WorkPtr ProcessGroup::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                    const c10d::AllgatherOptions& options) {
  Tensors outputs{output};
  Tensors inputs{input};
  return allgather_into_tensor_coalesced(outputs, inputs, options);
}

ProcessGroup::WorkPtr ProcessGroup::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                                        const c10d::AllgatherOptions& options) {
  const char* name = "all_gather_coalesced";
  TORCH_CHECK_VALUE(outputs.size() == static_cast<size_t>(size_), where(name), ": got ", outputs.size(),
                    " lists of outputs; give one for each of the ", size_, " ranks");
  std::vector<Tensors> by_input(inputs.size());
  for (const Tensors& of_rank : outputs) {
    TORCH_CHECK_VALUE(of_rank.size() == inputs.size(), where(name), ": got ", of_rank.size(), " outputs of a rank for ",
                      inputs.size(), " inputs; give as many of each");
    for (size_t i = 0; i < inputs.size(); ++i) {
      by_input[i].push_back(of_rank[i]);
    }
  }
  return gather_into(name, c10d::OpType::ALLGATHER_COALESCED, inputs, by_input, options.timeout);
}

ProcessGroup::WorkPtr ProcessGroup::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                                    const c10d::AllgatherOptions& options) {
  const char* name = "all_gather_into_tensor";
  TORCH_CHECK_VALUE(!outputs.empty() && outputs.size() == inputs.size(), where(name), ": got ", outputs.size(),
                    " outputs and ", inputs.size(), " inputs; give as many of each, and at least one");
  std::vector<Tensors> parts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    TORCH_CHECK_VALUE(outputs[i].numel() == inputs[i].numel() * size_, where(name), ": the output has ",
                      outputs[i].numel(), " elements and the input ", inputs[i].numel(), "; the output needs ", size_,
                      " times as many, one part for each rank");
    parts.push_back({outputs[i]});
  }
  return gather_into(name, c10d::OpType::_ALLGATHER_BASE, inputs, parts, options.timeout);
}

ProcessGroup::WorkPtr ProcessGroup::gather_into(const char* name, c10d::OpType type, const Tensors& inputs,
                                                const std::vector<Tensors>& outputs,
                                                std::chrono::milliseconds timeout) {
  Tensors all_outputs;
  for (const Tensors& parts : outputs) {
    all_outputs = joined(std::move(all_outputs), parts);
  }
  return enqueue(
      {name, type, inputs, std::move(all_outputs), timeout, CollectiveFingerprint::alike("all_gather", inputs)}, [&] {
        StreamSteps steps;
        std::vector<at::Tensor> buffers;
        for (size_t i = 0; i < inputs.size(); ++i) {
          buffers.push_back(flat_buffer_for(outputs[i], copies_operands_));
          if (inputs[i].numel() == 0) {
            continue;
          }
          const at::Tensor flat = flatten({inputs[i]}, copies_operands_);
          steps.staging.push_back(flat);
          c10d::AllgatherOptions sent;
          sent.timeout = transport_limit(limit(timeout));
          steps.transfers.emplace_back([out = host_bytes(buffers[i]), in = host_bytes(flat), sent](
                                           c10d::Backend& transport, const Operation& /*operation*/) mutable {
            return transport._allgather_base(out, in, sent);
          });
        }
        steps.staging = joined(std::move(steps.staging), buffers);
        steps.after = [buffers, &outputs] {
          for (size_t i = 0; i < buffers.size(); ++i) {
            unflatten_into(buffers[i], outputs[i]);
          }
        };
        return steps;
      });
}

ProcessGroup::WorkPtr ProcessGroup::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                           const c10d::GatherOptions& options) {
  const char* name = "gather";
  const int root = static_cast<int>(options.rootRank);
  TORCH_CHECK(inputs.size() == 1, where(name), ": expected one input, but got ", inputs.size());
  check_peer(name, root);
  const at::Tensor nothing = empty_view(inputs[0]);
  Tensors sent(static_cast<size_t>(size_), nothing);
  sent[options.rootRank] = inputs[0];
  if (root != rank_) {
    TORCH_CHECK_VALUE(outputs.empty() || outputs[0].empty(), where(name), ": got outputs; pass them only on rank ",
                      root, ", to which the values go");
    return exchange({name, c10d::OpType::GATHER, inputs, {}, options.timeout}, sent,
                    Tensors(static_cast<size_t>(size_), nothing), root);
  }
  TORCH_CHECK_VALUE(outputs.size() == 1 && outputs[0].size() == static_cast<size_t>(size_), where(name), ": got ",
                    outputs.empty() ? 0 : outputs[0].size(), " outputs; give one for each of the ", size_, " ranks");
  return exchange({name, c10d::OpType::GATHER, inputs, outputs[0], options.timeout}, sent, outputs[0], root);
}

ProcessGroup::WorkPtr ProcessGroup::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                            const c10d::ScatterOptions& options) {
  const char* name = "scatter";
  const int root = static_cast<int>(options.rootRank);
  TORCH_CHECK(outputs.size() == 1, where(name), ": expected one output, but got ", outputs.size());
  check_peer(name, root);
  const at::Tensor nothing = empty_view(outputs[0]);
  Tensors received(static_cast<size_t>(size_), nothing);
  received[options.rootRank] = outputs[0];
  if (root != rank_) {
    TORCH_CHECK_VALUE(inputs.empty() || inputs[0].empty(), where(name), ": got inputs; pass them only on rank ", root,
                      ", from which the values come");
    return exchange({name, c10d::OpType::SCATTER, {}, outputs, options.timeout},
                    Tensors(static_cast<size_t>(size_), nothing), received, root);
  }
  TORCH_CHECK_VALUE(inputs.size() == 1 && inputs[0].size() == static_cast<size_t>(size_), where(name), ": got ",
                    inputs.empty() ? 0 : inputs[0].size(), " inputs; give one for each of the ", size_, " ranks");
  return exchange({name, c10d::OpType::SCATTER, inputs[0], outputs, options.timeout}, inputs[0], received, root);
}

ProcessGroup::WorkPtr ProcessGroup::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                  std::vector<int64_t>& output_splits,
                                                  std::vector<int64_t>& input_splits,
                                                  const c10d::AllToAllOptions& options) {
  const char* name = "all_to_all_single";
  const auto parts = [&](const char* what, const at::Tensor& tensor, std::vector<int64_t> splits) {
    TORCH_CHECK_VALUE(tensor.dim() > 0, where(name), ": the ", what, " has no dimension to split; give it one");
    if (splits.empty()) {
      TORCH_CHECK_VALUE(tensor.size(0) % size_ == 0, where(name), ": the ", what, " has ", tensor.size(0),
                        " rows, which do not divide by ", size_, " ranks; give the sizes of its parts");
      splits.assign(static_cast<size_t>(size_), tensor.size(0) / size_);
    }
    const bool sensible = splits.size() == static_cast<size_t>(size_) &&
                          std::all_of(splits.begin(), splits.end(), [](int64_t size) { return size >= 0; });
    TORCH_CHECK_VALUE(sensible && std::accumulate(splits.begin(), splits.end(), int64_t{0}) == tensor.size(0),
                      where(name), ": the parts of the ", what, " are ", c10::IntArrayRef(splits), "; give ", size_,
                      " sizes, which add up to its ", tensor.size(0), " rows");
    return parts_of(tensor, splits);
  };
  const Tensors outputs = parts("output", output, output_splits);
  const Tensors inputs = parts("input", input, input_splits);
  return exchange({name, c10d::OpType::ALLTOALL_BASE, {input}, {output}, options.timeout}, inputs, outputs);
}

ProcessGroup::WorkPtr ProcessGroup::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  TORCH_CHECK_VALUE(outputs.size() == static_cast<size_t>(size_) && inputs.size() == outputs.size(),
                    where("all_to_all"), ": got ", outputs.size(), " outputs and ", inputs.size(),
                    " inputs; give one of each for each of the ", size_, " ranks");
  return exchange({"all_to_all", c10d::OpType::ALLTOALL, inputs, outputs, options.timeout}, inputs, outputs);
}

ProcessGroup::WorkPtr ProcessGroup::exchange(CollectiveCall call, const Tensors& sent, const Tensors& received,
                                             int root) {
  TORCH_CHECK_VALUE(received[rank_].numel() == sent[rank_].numel(), where(call.name),
                    ": the part that this rank sends to itself has ", sent[rank_].numel(),
                    " elements, and the part that receives it ", received[rank_].numel(), "; give both the same size");
  call.fingerprint = CollectiveFingerprint::by_rank(call.name, sent, received);
  call.fingerprint.root = root;
  const std::chrono::milliseconds timeout = call.timeout;
  return enqueue(std::move(call), [&] {
    c10d::AllToAllOptions options;
    options.timeout = transport_limit(limit(timeout));
    const at::Tensor flat = flatten(sent, copies_operands_);
    const at::Tensor buffer = flat_buffer_for(received, copies_operands_);
    const auto transfer = [in = host_bytes(flat), out = host_bytes(buffer), sent_bytes = byte_counts(sent),
                           received_bytes = byte_counts(received),
                           options](c10d::Backend& transport, const Operation& /*operation*/) mutable {
      return transport.alltoall_base(out, in, received_bytes, sent_bytes, options);
    };
    return StreamSteps{{transfer}, [buffer, &received] { unflatten_into(buffer, received); }, {flat, buffer}};
  });
}

c10::Device ProcessGroup::device_of(const c10d::BarrierOptions& options) const {
  if (bound_device_id_) {
    return *bound_device_id_;
  }
  if (options.device && options.device->type() == runtime::kDeviceType && options.device->has_index()) {
    return *options.device;
  }
  if (!options.device_ids.empty()) {
    runtime::check_device_index(options.device_ids[0]);
    return {runtime::kDeviceType, static_cast<c10::DeviceIndex>(options.device_ids[0])};
  }
  return {runtime::kDeviceType, runtime::current_device()};
}

ProcessGroup::WorkPtr ProcessGroup::barrier(const c10d::BarrierOptions& options) {
  return enqueue_barrier("barrier", options);
}

void ProcessGroup::monitoredBarrier(const c10d::BarrierOptions& options, bool /*wait_all_ranks*/) {
  enqueue_barrier("monitored_barrier", options)->wait();
}

ProcessGroup::WorkPtr ProcessGroup::enqueue_barrier(const char* name, const c10d::BarrierOptions& options) {
  return enqueue({name,
                  c10d::OpType::BARRIER,
                  {},
                  {},
                  options.timeout,
                  CollectiveFingerprint::alike(name, {}),
                  {},
                  device_of(options)},
                 [&] {
                   c10d::BarrierOptions sent;
                   sent.timeout = transport_limit(limit(options.timeout));
                   return StreamSteps{{[sent](c10d::Backend& transport, const Operation& /*operation*/) {
                     return transport.barrier(sent);
                   }}};
                 });
}

}  // namespace openreg::distributed
