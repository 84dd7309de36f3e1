// SPDX-License-Identifier: BSD-3-Clause
// Times what the host pays for a call, in bursts that fit into the device's queue; the device is idle before each
// burst. Prints one line per measurement: the median over the bursts in nanoseconds per call, a tab, and what was
// measured. `host_costs blocks N` allocates and releases N cached blocks and prints nothing, for callgrind.
#include <openreg.h>
#include <openreg/runtime/allocator.h>
#include <openreg/runtime/device.h>
#include <openreg/runtime/launch.h>
#include <openreg/runtime/status.h>
#include <openreg/runtime/stream.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace runtime = openreg::runtime;

namespace {

constexpr int kBurst = 2000;  // a stream holds 16384 launches
constexpr int kNodes = 100;

// `before`, `after` and the wait for the device are not timed. `calls` is what one burst counts as.
template <class Before, class Call, class After>
void measure(const char* name, int bursts, int repeats, int calls, Before before, Call call, After after) {
  std::vector<double> times;
  for (int burst = 0; burst < bursts; ++burst) {
    before();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) {
      call();
    }
    const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - begin;
    times.push_back(passed.count() / calls);
    after();
    OPENREG_CHECK(orDeviceSynchronize());
  }
  std::nth_element(times.begin(), times.begin() + bursts / 2, times.end());
  std::printf("%.1f\t%s\n", times[bursts / 2], name);
}

template <class Call>
void measure(const char* name, int bursts, int repeats, int calls, Call call) {
  measure(name, bursts, repeats, calls, [] {}, call, [] {});
}

// Times how long a number takes to another thread and back, through one cache line. It depends on the machine alone: on
// which cores the two threads run, and how far apart these are.
void measure_machine(int bursts) {
  if (std::thread::hardware_concurrency() < 2) {
    return;  // each way would take a time slice
  }
  constexpr int kEnd = -1;
  alignas(64) std::atomic<int> number{0};  // odd on the way to the other thread, even on the way back
  std::thread other([&] {
    for (int seen = number; seen != kEnd; seen = number) {
      if (seen % 2 == 1) {
        number = seen + 1;
      }
    }
  });
  constexpr int kTrips = 100;
  measure("a number to another thread and back", bursts, kTrips, kTrips, [&] {
    const int sent = number + 1;
    number = sent;
    while (number == sent) {
    }
  });
  number = kEnd;
  other.join();
}

// The least that a kernel can do and be seen to have run.
orError_t count(void* state, char* /*message*/, std::size_t /*message_size*/) {
  ++*static_cast<std::int64_t*>(state);
  return orSuccess;
}

void measure_driver(int bursts) {
  orStream_t stream = nullptr;
  orStream_t other = nullptr;
  orEvent_t event = nullptr;
  orSemaphore_t semaphore = nullptr;
  std::uint64_t held = 0;  // the value for which the stream waits
  OPENREG_CHECK(orStreamCreate(&stream));
  OPENREG_CHECK(orStreamCreate(&other));
  OPENREG_CHECK(orEventCreate(&event));
  OPENREG_CHECK(orSemaphoreCreate(&semaphore, held));
  orKernel kernel{};
  kernel.name = "empty";
  kernel.function = &count;
  std::int64_t runs = 0;
  kernel.state = &runs;

  // Between these two the stream executes nothing, however long the machine takes for a burst.
  const auto hold = [&] { OPENREG_CHECK(orStreamWaitSemaphore(stream, semaphore, ++held)); };
  const auto release = [&] { OPENREG_CHECK(orSemaphoreSignal(semaphore, held)); };
  measure("orLaunchKernel, the device is idle", bursts, kBurst, kBurst,
          [&] { OPENREG_CHECK(orLaunchKernel(stream, &kernel)); });
  measure(
      "orLaunchKernel, the stream waits", bursts, kBurst, kBurst, hold,
      [&] { OPENREG_CHECK(orLaunchKernel(stream, &kernel)); }, release);
  measure("orEventRecord, the device is idle", bursts, kBurst, kBurst,
          [&] { OPENREG_CHECK(orEventRecord(event, stream)); });
  measure(
      "orEventRecord, the stream waits", bursts, kBurst, kBurst, hold,
      [&] { OPENREG_CHECK(orEventRecord(event, stream)); }, release);
  measure("orStreamWaitEvent, the event is complete", bursts, kBurst, kBurst,
          [&] { OPENREG_CHECK(orStreamWaitEvent(other, event, 0)); });
  const auto hold_and_record = [&] {
    hold();
    OPENREG_CHECK(orEventRecord(event, stream));
  };
  measure(
      "orStreamWaitEvent, the stream waits", bursts, kBurst, kBurst, hold_and_record,
      [&] { OPENREG_CHECK(orStreamWaitEvent(other, event, 0)); }, release);
  measure("orEventQuery, the event is complete", bursts, kBurst, kBurst, [&] { OPENREG_CHECK(orEventQuery(event)); });
  measure("orStreamCreate and orStreamDestroy", bursts, kBurst, kBurst, [] {
    orStream_t made = nullptr;
    OPENREG_CHECK(orStreamCreate(&made));
    OPENREG_CHECK(orStreamDestroy(made));
  });

  orGraph_t graph = nullptr;
  OPENREG_CHECK(orStreamBeginCapture(stream, orStreamCaptureModeGlobal));
  for (int i = 0; i < kNodes; ++i) {
    OPENREG_CHECK(orLaunchKernel(stream, &kernel));
  }
  OPENREG_CHECK(orStreamEndCapture(stream, &graph));
  measure("orGraphLaunch, per call", bursts, kNodes, kNodes, [&] { OPENREG_CHECK(orGraphLaunch(graph, stream)); });
  measure("orGraphLaunch until done, per node of 100", bursts, 1, kNodes, [&] {
    OPENREG_CHECK(orGraphLaunch(graph, stream));
    OPENREG_CHECK(orStreamSynchronize(stream));
  });
  TORCH_CHECK(runs == std::int64_t{bursts} * (2 * kBurst + (kNodes + 1) * kNodes), "kernels were lost: ", runs);
  OPENREG_CHECK(orGraphDestroy(graph));
  OPENREG_CHECK(orSemaphoreDestroy(semaphore));
  OPENREG_CHECK(orEventDestroy(event));
  OPENREG_CHECK(orStreamDestroy(other));
  OPENREG_CHECK(orStreamDestroy(stream));
}

void measure_runtime(int bursts) {
  c10::DeviceAllocator& allocator = runtime::device_allocator();
  const c10::DataPtr neighbor = allocator.allocate(3000);  // the segment stays
  measure("allocate and release a cached block", bursts, kBurst, kBurst,
          [&] { const c10::DataPtr block = allocator.allocate(3000); });
  float* numbers = static_cast<float*>(runtime::kernel_view(neighbor.get()));
  measure("launch() of a closure, the device is idle", bursts, kBurst, kBurst,
          [&] { runtime::launch("closure", c10::DeviceIndex{0}, [numbers] { numbers[0] = 1; }); });
}

void allocate_and_release(int blocks) {
  c10::DeviceAllocator& allocator = runtime::device_allocator();
  const c10::DataPtr neighbor = allocator.allocate(3000);  // the segment stays
  for (int i = 0; i < blocks; ++i) {
    const c10::DataPtr block = allocator.allocate(3000);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "blocks") == 0) {
    runtime::ensure_initialized();
    allocate_and_release(std::atoi(argv[2]));
    return 0;
  }
  const int bursts = argc > 1 ? std::atoi(argv[1]) : 200;
  runtime::ensure_initialized();
  measure_machine(bursts);
  measure_driver(bursts);
  measure_runtime(bursts);
  return 0;
}
