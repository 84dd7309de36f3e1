// SPDX-License-Identifier: BSD-3-Clause
// Implements at::GraphImplInterface, the backend's part of torch.accelerator.Graph.
#include <ATen/core/GraphImplInterface.h>

#include <memory>
#include <optional>
#include <string>

#include "allocator/memory_pool.h"
#include "base/enqueue.h"
#include "openreg.h"
#include "openreg/runtime/allocator.h"
#include "openreg/runtime/capture.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/event.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/stream.h"
#include "random/graph_random_state.h"

namespace openreg::runtime {

namespace {

// Converts a capture mode. PyTorch leaves its default mode to the backend. Here it is thread-local, so that other
// threads, such as a data loader's, may wait for the device during a capture.
orStreamCaptureMode to_driver(at::GraphCaptureMode mode) {
  switch (mode) {
    case at::GraphCaptureMode::Global:
      return orStreamCaptureModeGlobal;
    case at::GraphCaptureMode::Relaxed:
      return orStreamCaptureModeRelaxed;
    case at::GraphCaptureMode::Default:
    case at::GraphCaptureMode::ThreadLocal:
      break;
  }
  return orStreamCaptureModeThreadLocal;
}

// A graph: the driver's graph, the pool of its memory, and the random state of its kernels. Not thread-safe, as in
// PyTorch.
class GraphImpl final : public at::GraphImplInterface {
 public:
  // Ignores `keep_graph`, because the driver's graph can always be launched and drawn.
  explicit GraphImpl(const at::GraphImplArgs& /*args*/) {}
  GraphImpl(const GraphImpl&) = delete;
  GraphImpl& operator=(const GraphImpl&) = delete;
  ~GraphImpl() override {
    try {
      reset();
    } catch (const std::exception& error) {
      TORCH_WARN("destroying a graph of an openreg device failed: ", error.what());
    }
  }

  void capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode mode) override {
    TORCH_CHECK(graph_ == nullptr && !capture_.has_value(),
                "capture_begin(): this graph has been captured already; call reset() before it captures again");
    ensure_initialized();
    const c10::Stream stream = current_stream();
    const c10::MempoolId_t none{0, 0};
    pool_ = pool == none ? make_pool_id(true) : pool;
    OPENREG_CHECK(orStreamBeginCapture(native_handle(stream), to_driver(mode)));
    capture_ = Running{stream, capture_id(stream)};
    const auto is_captured = [id = capture_->id](c10::Stream other) {
      return other.device_type() == kDeviceType && capture_id(other) == id;
    };
    begin_allocate_to_pool(stream.device_index(), pool_, is_captured);
    host_allocator().begin_allocate_to_pool(pool_, is_captured);
    random_ = std::make_shared<GraphRandomState>();
    add_capture_random(capture_->id, random_);
  }

  void capture_end() override {
    TORCH_CHECK(capture_.has_value(), "capture_end(): this graph is not capturing; call capture_begin() first");
    const Running capture = *capture_;
    capture_.reset();
    device_ = capture.stream.device_index();
    const orError_t status = orStreamEndCapture(native_handle(capture.stream), &graph_);
    remove_capture_random(capture.id);
    end_allocate_to_pool(device_, pool_);
    host_allocator().end_allocate_to_pool(pool_);
    if (status != orSuccess) {
      release_pools();
      OPENREG_CHECK(status);
    }
  }

  // REAL HW: compiles the graph for the device. Here a launch enqueues its nodes one by one.
  void instantiate() override { check_captured("instantiate"); }

  void replay() override {
    check_captured("replay");
    const c10::Stream stream = current_stream(device_);
    if (!random_->empty()) {
      last_replay_.block(stream);  // a replay on another stream may still read what begin_replay() sets
      random_->begin_replay(stream);
    }
    const orStream_t handle = native_handle(stream);
    OPENREG_CHECK(enqueue_without_gil([&] { return orGraphLaunch(graph_, handle); }));
    last_replay_.record(stream);
  }

  void reset() override {
    if (capture_.has_value()) {
      try {
        capture_end();
      } catch (const c10::Error&) {
        return;  // the capture was invalidated, and capture_end() has released everything
      }
    }
    if (graph_ != nullptr) {
      OPENREG_WARN(orGraphDestroy(graph_));
      graph_ = nullptr;
      release_pools();
    }
    random_.reset();
  }

  c10::MempoolId_t pool() const override {
    check_captured("pool");
    return pool_;
  }

  // Does nothing, because the driver always stores all that a dump shows.
  void enable_debug_mode() override {}

  void debug_dump(const std::string& path) override {
    check_captured("debug_dump");
    OPENREG_CHECK(orGraphDebugDotPrint(graph_, path.c_str()));
  }

 private:
  // A capture that has not ended: its stream and the driver's id of it.
  struct Running {
    c10::Stream stream;
    uint64_t id;
  };

  void check_captured(const char* function) const {
    TORCH_CHECK(graph_ != nullptr, function,
                "(): this graph holds no capture; capture one first, for example with "
                "`with torch.Stream(), graph:`");
  }

  // Does nothing in a forked child, which may have inherited the mutexes of the allocators locked.
  void release_pools() {
    if (orDriverIsUsable() == 0) {
      return;
    }
    release_pool(device_, pool_);
    host_allocator().release_pool(pool_);
  }

  std::optional<Running> capture_;
  orGraph_t graph_ = nullptr;
  c10::DeviceIndex device_ = 0;
  c10::MempoolId_t pool_{0, 0};
  std::shared_ptr<GraphRandomState> random_;
  Event last_replay_;
};

}  // namespace

}  // namespace openreg::runtime

namespace at {

// The key is the device's name of rename_privateuse1_backend() in capitals.
REGISTER_GRAPH_IMPL(OPENREG, openreg::runtime::GraphImpl)

}  // namespace at
