// SPDX-License-Identifier: BSD-3-Clause
// Checks the arguments of a call, and describes the call for error messages, for other ranks and for the flight
// recorder.
#include <c10/util/thread_name.h>

#include <algorithm>
#include <utility>

#include "group/process_group.h"
#include "group/trace.h"
#include "openreg/runtime/device.h"
#include "transport/transport_control_channel.h"

namespace openreg::distributed {

namespace {

// Returns the sizes of each tensor. With `stacked`, tensors of the same sizes count as one tensor with a further first
// dimension.
std::vector<std::vector<int64_t>> sizes_of(const std::vector<at::Tensor>& tensors, bool stacked) {
  std::vector<std::vector<int64_t>> all;
  for (const at::Tensor& tensor : tensors) {
    all.push_back(tensor.sizes().vec());
  }
  if (stacked && !all.empty() && std::equal(all.begin() + 1, all.end(), all.begin())) {
    all.front().insert(all.front().begin(), static_cast<int64_t>(all.size()));
    all.resize(1);
  }
  return all;
}

// Returns the name of a call that PyTorch's analyzer of flight records expects. It begins with the name of a library,
// and Gloo is one that the analyzer knows.
std::string name_of_record(c10d::OpType type, const CommStreamKey& key, int rank, size_t outputs) {
  switch (type) {
    case c10d::OpType::BROADCAST:
      return "gloo:broadcast";
    case c10d::OpType::ALLREDUCE:
      return "gloo:all_reduce";
    case c10d::OpType::ALLREDUCE_COALESCED:
      return "gloo:allreduce_coalesced";
    case c10d::OpType::REDUCE:
      return "gloo:reduce";
    case c10d::OpType::ALLGATHER:
      return "gloo:all_gather";
    case c10d::OpType::ALLGATHER_COALESCED:
      return "gloo:ALLGATHER_coalesced";
    case c10d::OpType::_ALLGATHER_BASE:
      return outputs == 1 ? "gloo:_all_gather_base" : "gloo:all_gather_into_tensor_coalesced";
    case c10d::OpType::REDUCE_SCATTER:
      return "gloo:reduce_scatter";
    case c10d::OpType::_REDUCE_SCATTER_BASE:
      return outputs == 1 ? "gloo:_reduce_scatter_base" : "gloo:reduce_scatter_tensor_coalesced";
    case c10d::OpType::GATHER:
      return "gloo:gather";
    case c10d::OpType::SCATTER:
      return "gloo:scatter";
    case c10d::OpType::ALLTOALL:
    case c10d::OpType::ALLTOALL_BASE:
      return "gloo:all_to_all";
    case c10d::OpType::SEND:
      return "gloo:send " + std::to_string(rank) + "->" + std::to_string(key.peer);
    case c10d::OpType::RECV:
    case c10d::OpType::RECVANYSOURCE:
      return "gloo:recv " + std::to_string(rank) + "<-";  // The source is appended when it is known.
    default:
      return "gloo:barrier";
  }
}

}  // namespace

std::string ProcessGroup::rank_description() const {
  const std::string& description = getGroupDesc();
  const std::string& group = description.empty() || description == "undefined" ? getGroupUid() : description;
  return "rank " + std::to_string(rank_) + " of " + std::to_string(size_) + " in the group '" + group + "'";
}

std::string ProcessGroup::where(const char* name) const {
  return std::string("occl: ") + name + " on " + rank_description();
}

ProcessGroup::Tensors ProcessGroup::CollectiveCall::operands() const {
  Tensors all = inputs;
  const bool in_place = inputs.size() == outputs.size() &&
                        std::equal(inputs.begin(), inputs.end(), outputs.begin(),
                                   [](const at::Tensor& one, const at::Tensor& other) { return one.is_same(other); });
  if (!in_place) {
    all.insert(all.end(), outputs.begin(), outputs.end());
  }
  return all;
}

OperationDescription ProcessGroup::describe(const CollectiveCall& call, const Tensors& operands) {
  OperationDescription description;
  description.name = call.name;
  description.sequence = sequence_ + 1;
  description.tensors = operands.size();
  if (!operands.empty()) {
    description.dtype = c10::getDtypeNames(operands.front().scalar_type()).first;
    description.sizes = operands.front().sizes().vec();
  }
  for (const at::Tensor& tensor : operands) {
    description.bytes += tensor.nbytes();
  }
  description.reduction = call.fingerprint.reduction;
  description.root = call.fingerprint.root;
  description.peer = call.key.peer;
  std::string place = rank_description();
  if (rank_description_ == nullptr || *rank_description_ != place) {
    rank_description_ = std::make_shared<const std::string>(std::move(place));
  }
  description.group = rank_description_;
  return description;
}

OperationSignature ProcessGroup::signature_of(const CollectiveCall& call) const {
  OperationSignature signature;
  signature.sent = call.fingerprint.sent;
  signature.expected = call.fingerprint.expected;
  signature.peer = call.key.peer;
  signature.tag = call.key.tag;
  if (call.key.is_message()) {
    signature.kind = call.key.receives ? OperationSignature::Kind::kReceive : OperationSignature::Kind::kSend;
  } else {
    signature.number = collectives_;
    signature.fingerprint =
        call.fingerprint.hash(call.outputs.empty() ? "" : c10::toString(call.outputs.front().scalar_type()));
  }
  return signature;
}

void ProcessGroup::count(const CollectiveCall& call) noexcept {
  ++sequence_;
  ++(call.key.is_message() ? messages_ : collectives_);
}

std::shared_ptr<FlightRecord> ProcessGroup::record(const CollectiveCall& call, std::shared_ptr<void> stack) {
  if (flight_group_ == nullptr || flight_group_->name != getGroupUid() || flight_group_->title != getGroupDesc()) {
    flight_group_ = std::make_shared<const FlightGroup>(FlightGroup{number_, getGroupUid(), getGroupDesc(), ranks_});
  }
  auto flight = std::make_shared<FlightRecord>();
  flight->group = flight_group_;
  flight->name = name_of_record(call.type, call.key, rank_, call.outputs.size());
  flight->is_message = call.key.is_message();
  flight->collectives = collectives_ + (flight->is_message ? 0 : 1);
  flight->messages = messages_ + (flight->is_message ? 1 : 0);
  flight->number = sequence_ + 1;
  flight->timeout = limit(call.timeout);
  flight->created = now_nanoseconds();
  if (flight_recorder().capacity() == 0) {
    return flight;
  }
  // The analyzer compares one tensor of a rank with the stacked tensors of all ranks.
  flight->inputs = sizes_of(call.inputs, call.type == c10d::OpType::REDUCE_SCATTER);
  flight->outputs = sizes_of(call.outputs, call.type == c10d::OpType::ALLGATHER);
  const Tensors& typed = call.inputs.empty() ? call.outputs : call.inputs;
  flight->dtype = typed.empty() ? "" : c10::toString(typed.front().scalar_type());
  flight->thread = c10::getThreadName();
  flight->stack = std::move(stack);
  return flight;
}

c10::Device ProcessGroup::check_operands(const CollectiveCall& call, const Tensors& operands) const {
  if (operands.empty()) {
    TORCH_CHECK_VALUE(call.device.has_value(), where(call.name), ": got no tensors; give at least one");
    return *call.device;
  }
  const c10::Device device = operands.front().device();
  for (const at::Tensor& tensor : operands) {
    TORCH_CHECK(tensor.device().type() == runtime::kDeviceType, where(call.name), ": a tensor is on ", tensor.device(),
                "; move it with .to('openreg'), or make the group with backend 'cpu:gloo,openreg:occl'");
    TORCH_CHECK(tensor.device() == device, where(call.name), ": tensors are on ", device, " and on ", tensor.device(),
                "; all of one call have to be on one device");
    TORCH_CHECK(tensor.layout() == c10::kStrided, where(call.name), ": a tensor on ", device, " has the layout ",
                tensor.layout(), "; convert it with .to_dense()");
    TORCH_CHECK_TYPE(tensor.scalar_type() == operands.front().scalar_type(), where(call.name),
                     ": tensors are of dtype ", operands.front().scalar_type(), " and of ", tensor.scalar_type(),
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
  TORCH_CHECK(tensors.size() == 1, where(name), ": expected one tensor, but got ", tensors.size());
  TORCH_CHECK_VALUE(tag >= 0 && tag < TransportControlChannel::kTag, where(name), ": the tag is ", tag,
                    "; give one from 0 to ", TransportControlChannel::kTag - 1);
  if (peer != CommStreamKey::kAnySource) {
    check_peer(name, peer);
    TORCH_CHECK_VALUE(peer != rank_, where(name), ": rank ", peer, " is this rank itself; copy the tensor instead");
  }
}

}  // namespace openreg::distributed
