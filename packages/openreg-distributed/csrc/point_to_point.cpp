// SPDX-License-Identifier: BSD-3-Clause
// Messages between two ranks.
#include "host_memory.h"
#include "packing.h"
#include "process_group.h"

namespace openreg::distributed {

ProcessGroup::WorkPtr ProcessGroup::send(Tensors& tensors, int destination, int tag) {
  TORCH_CHECK(tensors.size() == 1, where("send"), ": takes one tensor, got ", tensors.size());
  check_peer("send", destination);
  const at::Tensor tensor = tensors[0];
  return enqueue({"send", c10d::OpType::SEND, {tensor}, {tensor}, c10d::kUnsetTimeout, {destination, false, tag}}, [&] {
    const at::Tensor packed = pack({tensor}, copies_operands_);
    const auto transfer = [bytes = Tensors{host_bytes(packed)}, destination, tag](c10d::Backend& transport) mutable {
      return transport.send(bytes, destination, tag);
    };
    return Steps{{transfer}, nullptr, {packed}};
  });
}

ProcessGroup::WorkPtr ProcessGroup::recv(Tensors& tensors, int source, int tag) {
  check_peer("recv", source);
  return receive("recv", c10d::OpType::RECV, tensors, {source, true, tag});
}

ProcessGroup::WorkPtr ProcessGroup::recvAnysource(Tensors& tensors, int tag) {
  return receive("recv", c10d::OpType::RECVANYSOURCE, tensors, {Route::kAnySource, true, tag});
}

ProcessGroup::WorkPtr ProcessGroup::receive(const char* name, c10d::OpType type, Tensors& tensors, const Route& route) {
  TORCH_CHECK(tensors.size() == 1, where(name), ": takes one tensor, got ", tensors.size());
  const at::Tensor tensor = tensors[0];
  return enqueue({name, type, {tensor}, {tensor}, c10d::kUnsetTimeout, route}, [&] {
    const at::Tensor packed = room_for({tensor}, copies_operands_);
    const auto transfer = [bytes = Tensors{host_bytes(packed)}, route](c10d::Backend& transport) mutable {
      return route.peer == Route::kAnySource ? transport.recvAnysource(bytes, route.tag)
                                             : transport.recv(bytes, route.peer, route.tag);
    };
    return Steps{{transfer}, [packed, tensor] { unpack(packed, {tensor}); }, {packed}};
  });
}

}  // namespace openreg::distributed
