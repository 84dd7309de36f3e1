// SPDX-License-Identifier: BSD-3-Clause
// Messages between two ranks. The receiver knows of each, by an announcement, before it asks the transport for it.
#include "process_group.h"
#include "transport/flat_buffer.h"
#include "transport/host_memory.h"

namespace openreg::distributed {

ProcessGroup::WorkPtr ProcessGroup::send(Tensors& tensors, int destination, int tag) {
  check_message("send", tensors, destination, tag);
  const at::Tensor tensor = tensors[0];
  const Route route{destination, false, tag};
  return enqueue(
      {"send", c10d::OpType::SEND, {tensor}, {}, c10d::kUnsetTimeout, Agreed::alike("send", {tensor}), route}, [&] {
        const at::Tensor packed = pack({tensor}, copies_operands_);
        const auto transfer = [bytes = Tensors{host_bytes(packed)}, destination, tag](
                                  c10d::Backend& transport, const Operation& /*operation*/) mutable {
          return transport.send(bytes, destination, tag);
        };
        return Steps{{transfer}, nullptr, {packed}};
      });
}

ProcessGroup::WorkPtr ProcessGroup::recv(Tensors& tensors, int source, int tag) {
  return receive("recv", c10d::OpType::RECV, tensors, {source, true, tag});
}

ProcessGroup::WorkPtr ProcessGroup::recvAnysource(Tensors& tensors, int tag) {
  return receive("recv", c10d::OpType::RECVANYSOURCE, tensors, {Route::kAnySource, true, tag});
}

ProcessGroup::WorkPtr ProcessGroup::receive(const char* name, c10d::OpType type, Tensors& tensors, const Route& route) {
  check_message(name, tensors, route.peer, route.tag);
  const at::Tensor tensor = tensors[0];
  return enqueue({name, type, {}, {tensor}, c10d::kUnsetTimeout, Agreed::alike("recv", {tensor}), route}, [&] {
    const at::Tensor packed = room_for({tensor}, copies_operands_);
    const auto transfer = [bytes = Tensors{host_bytes(packed)}, tag = route.tag](c10d::Backend& transport,
                                                                                 const Operation& operation) mutable {
      return transport.recv(bytes, operation.source(), tag);
    };
    return Steps{{transfer}, [packed, tensor] { unpack(packed, {tensor}); }, {packed}};
  });
}

}  // namespace openreg::distributed
