// SPDX-License-Identifier: BSD-3-Clause
// Send and receive. A receive is handed to the transport after the sender has announced its message, because then its
// source and size are known.
#include "group/process_group.h"
#include "transport/flat_buffer.h"
#include "transport/host_memory.h"

namespace openreg::distributed {

ProcessGroup::WorkPtr ProcessGroup::send(Tensors& tensors, int destination, int tag) {
  check_message("send", tensors, destination, tag);
  const at::Tensor tensor = tensors[0];
  const CommStreamKey key{destination, false, tag};
  return enqueue({"send",
                  c10d::OpType::SEND,
                  {tensor},
                  {},
                  c10d::kUnsetTimeout,
                  CollectiveFingerprint::alike("send", {tensor}),
                  key},
                 [&] {
                   const at::Tensor flat = flatten({tensor}, copies_operands_);
                   const auto transfer = [bytes = Tensors{host_bytes(flat)}, destination, tag](
                                             c10d::Backend& transport, const Operation& /*operation*/) mutable {
                     return transport.send(bytes, destination, tag);
                   };
                   return StreamSteps{{transfer}, nullptr, {flat}};
                 });
}

ProcessGroup::WorkPtr ProcessGroup::recv(Tensors& tensors, int source, int tag) {
  return receive("recv", c10d::OpType::RECV, tensors, {source, true, tag});
}

ProcessGroup::WorkPtr ProcessGroup::recvAnysource(Tensors& tensors, int tag) {
  return receive("recv", c10d::OpType::RECVANYSOURCE, tensors, {CommStreamKey::kAnySource, true, tag});
}

ProcessGroup::WorkPtr ProcessGroup::receive(const char* name, c10d::OpType type, Tensors& tensors,
                                            const CommStreamKey& key) {
  check_message(name, tensors, key.peer, key.tag);
  const at::Tensor tensor = tensors[0];
  return enqueue({name, type, {}, {tensor}, c10d::kUnsetTimeout, CollectiveFingerprint::alike("recv", {tensor}), key},
                 [&] {
                   const at::Tensor flat = flat_buffer_for({tensor}, copies_operands_);
                   const auto transfer = [bytes = Tensors{host_bytes(flat)}, tag = key.tag](
                                             c10d::Backend& transport, const Operation& operation) mutable {
                     return transport.recv(bytes, operation.source(), tag);
                   };
                   return StreamSteps{{transfer}, [flat, tensor] { unflatten_into(flat, {tensor}); }, {flat}};
                 });
}

}  // namespace openreg::distributed
