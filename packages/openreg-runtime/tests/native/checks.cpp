// SPDX-License-Identifier: BSD-3-Clause
// What Python cannot reach without operators: memory that several streams use, releases on a failed device, launches.
// The test that runs this asks that it writes nothing to its standard error.
#include <ATen/Context.h>
#include <ATen/ops/from_blob.h>
#include <openreg.h>
#include <openreg/runtime/alias.h>
#include <openreg/runtime/allocator.h>
#include <openreg/runtime/device.h>
#include <openreg/runtime/event.h>
#include <openreg/runtime/launch.h>
#include <openreg/runtime/launch_memory.h>
#include <openreg/runtime/memory_observer.h>
#include <openreg/runtime/status.h>
#include <openreg/runtime/stream.h>
#include <openreg/runtime/tool_hooks.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace runtime = openreg::runtime;

namespace {

constexpr size_t kSize = 4096;

void check(bool condition, const char* what) {
  if (!condition) {
    std::fprintf(stderr, "failed: %s\n", what);
    std::exit(1);
  }
}

template <class Error, class Function>
void check_throws(Function function, const char* what) {
  try {
    function();
  } catch (const Error&) {
    return;
  }
  check(false, what);
}

// Holds a stream until it is opened. The stream must be synchronized before the end of the gate.
class Gate {
 public:
  explicit Gate(c10::Stream stream) {
    OPENREG_CHECK(orSemaphoreCreate(&semaphore_, 0));
    OPENREG_CHECK(orStreamWaitSemaphore(runtime::native_handle(stream), semaphore_, 1));
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { check(orSemaphoreDestroy(semaphore_) == orSuccess, "no stream is behind a gate when it goes"); }

  void open() { OPENREG_CHECK(orSemaphoreSignal(semaphore_, 1)); }

 private:
  orSemaphore_t semaphore_ = nullptr;
};

// The stream is at work, and therefore uses the memory when it is released.
void* allocate_and_use_on(c10::Stream stream) {
  c10::DataPtr data = runtime::device_allocator().allocate(kSize);
  runtime::device_allocator().recordStream(data, stream);
  runtime::device_allocator().recordStream(data, stream);
  return data.get();
}

// One thread releases what another allocated, and a thread that ends leaves nothing behind.
void memory_of_launches_is_used_again() {
  constexpr size_t kBytes = 200;
  void* first = runtime::allocate_launch_memory(kBytes);
  void* second = runtime::allocate_launch_memory(kBytes);
  std::thread([&] {
    runtime::release_launch_memory(first, kBytes);
    runtime::release_launch_memory(second, kBytes);
  }).join();
  void* left_over = nullptr;
  std::thread([&] {
    void* taken = runtime::allocate_launch_memory(kBytes - 1);  // of the same class
    check(taken == first || taken == second, "memory released by one thread serves another");
    left_over = taken == first ? second : first;
    runtime::release_launch_memory(taken, kBytes - 1);
  }).join();
  std::thread([&] {
    void* a = runtime::allocate_launch_memory(kBytes);
    void* b = runtime::allocate_launch_memory(kBytes);
    check(a == left_over || b == left_over, "memory that an ended thread had taken serves another");
    runtime::release_launch_memory(a, kBytes);
    runtime::release_launch_memory(b, kBytes);
  }).join();
  constexpr size_t kLarge = 100'000;
  void* large = runtime::allocate_launch_memory(kLarge);
  std::memset(large, 1, kLarge);
  runtime::release_launch_memory(large, kLarge);
}

bool reused(void* address) {
  return runtime::device_allocator().allocate(kSize).get() == address;
}

int64_t active_bytes() {
  return runtime::device_allocator().getDeviceStats(0).active_bytes[0].current;
}

void memory_waits_for_every_stream_that_uses_it() {
  // The default streams of all devices have one id, and a stream of the same device has another.
  for (const c10::Stream stream : {runtime::new_stream(0, 0), runtime::default_stream(1), runtime::new_stream(1, 0)}) {
    Gate gate(stream);
    void* address = allocate_and_use_on(stream);
    check(active_bytes() > 0, "released memory in use counts as active");
    check(!reused(address), "memory in use by another stream is not reused");
    gate.open();
    runtime::synchronize_stream(stream);
    check(reused(address), "memory is reused when the other stream is done");
    check(active_bytes() == 0, "nothing is active afterwards");
  }
  Gate gate(runtime::default_stream(0));
  void* address = allocate_and_use_on(runtime::default_stream(0));
  check(reused(address), "the stream that memory belongs to does not wait for itself");
  gate.open();
  runtime::synchronize_device(0);
}

void emptying_the_cache_waits_for_no_other_device() {
  constexpr uint64_t kDelay = 50'000'000;  // nanoseconds; the cache of device 1 waits for it, so no gate can be here
  OPENREG_CHECK(orStreamDelay(runtime::native_handle(runtime::default_stream(1)), kDelay));
  void* address = allocate_and_use_on(runtime::default_stream(1));
  runtime::device_allocator().emptyCache({0, 0});
  runtime::synchronize_device(1);
  check(reused(address) || active_bytes() == 0, "the block comes back");
}

void several_observers_get_all_events_in_order() {
  using Kind = runtime::MemoryEventKind;
  std::vector<runtime::MemoryEvent> all;
  std::vector<runtime::MemoryEvent> of_device_1;
  const auto note = [](std::vector<runtime::MemoryEvent>& events) {
    return [&events](const runtime::MemoryEvent& event) { events.push_back(event); };
  };
  runtime::device_allocator().emptyCache({0, 0});
  const uint64_t first = runtime::observe_memory({note(all)});
  const uint64_t second = runtime::observe_memory({note(of_device_1), runtime::kAllMemoryEvents, 1});
  Gate gate(runtime::default_stream(1));
  void* address = allocate_and_use_on(runtime::default_stream(1));
  gate.open();
  runtime::synchronize_device(1);
  runtime::device_allocator().emptyCache({0, 0});
  runtime::stop_observing_memory(first);
  runtime::device_allocator().allocate(kSize);
  const Kind expected[] = {Kind::kSegmentAllocated, Kind::kAllocated,     Kind::kStreamRecorded,
                           Kind::kFreeRequested,    Kind::kFreeCompleted, Kind::kSegmentReleased};
  check(all.size() == std::size(expected), "an observer gets what happens while it is subscribed");
  for (size_t i = 0; i < all.size(); ++i) {
    check(all[i].kind == expected[i] && all[i].address == address && all[i].device == 0, "one by one, in order");
  }
  check(all[1].requested == kSize && all[1].allocated_bytes == all[1].size, "with sizes and totals");
  check(all[2].other_device == 1 && all[5].reserved_bytes == 0, "a use by a stream of another device too");
  check(of_device_1.empty(), "an observer of one device gets nothing of another");
  runtime::stop_observing_memory(second);
  check_throws<c10::Error>([&] { runtime::stop_observing_memory(second); }, "a subscription is ended once");
  check_throws<c10::Error>([] { runtime::stop_observing_memory(0); }, "a number that names no subscription");
}

void wrong_observers_are_refused() {
  const auto nothing = [](const runtime::MemoryEvent&) {};
  check_throws<c10::ValueError>([] { runtime::observe_memory({nullptr}); }, "no callback");
  check_throws<c10::ValueError>([&] { runtime::observe_memory({nothing, 0}); }, "no kinds");
  check_throws<c10::ValueError>([&] { runtime::observe_memory({nothing, ~0u}); }, "unknown kinds");
  check_throws<c10::Error>([&] { runtime::observe_memory({nothing, runtime::kAllMemoryEvents, 99}); },
                           "no such device");
}

// Everything would wait for a lock that the calling thread holds, or for who waits for it.
void callbacks_that_call_the_allocator_are_refused() {
  uint64_t own = 0;
  int refused = 0;
  const auto refuse = [&refused](auto function) {
    try {
      function();
    } catch (const c10::Error& error) {
      const bool named = std::string(error.what()).find("inside a callback of observe_memory()") != std::string::npos;
      refused += named ? 1 : 0;
    }
  };
  own = runtime::observe_memory({[&](const runtime::MemoryEvent&) {
                                   refuse([] { runtime::device_allocator().allocate(kSize); });
                                   refuse([] { runtime::device_allocator().emptyCache({0, 0}); });
                                   refuse([] { runtime::device_allocator().getDeviceStats(0); });
                                   refuse([] { runtime::observe_memory({[](const runtime::MemoryEvent&) {}}); });
                                   refuse([&] { runtime::stop_observing_memory(own); });
                                   refuse([] { runtime::launch("nothing", c10::DeviceIndex{0}, [] {}); });
                                 },
                                 runtime::memory_event_bit(runtime::MemoryEventKind::kAllocated)});
  runtime::device_allocator().allocate(kSize);
  check(refused == 6, "what a callback must not call throws and says why");
  runtime::stop_observing_memory(own);
}

void a_callback_that_throws_is_not_called_again() {
  int calls = 0;
  const uint64_t id = runtime::observe_memory({[&](const runtime::MemoryEvent&) {
    ++calls;
    throw std::runtime_error("on purpose");
  }});
  const c10::DataPtr memory = runtime::device_allocator().allocate(kSize);
  check(memory.get() != nullptr && calls == 1, "the allocation goes on");
  try {
    runtime::stop_observing_memory(id);
    check(false, "the end of the subscription says what was thrown");
  } catch (const c10::Error& error) {
    check(std::string(error.what()).find("on purpose") != std::string::npos, "in the words of the callback");
  }
  check_throws<c10::Error>([&] { runtime::stop_observing_memory(id); }, "and ends it");
}

void recording_unknown_memory_does_nothing() {
  int number = 0;
  const c10::DataPtr foreign(&number, c10::Device(runtime::kDeviceType, 0));
  runtime::device_allocator().recordStream(foreign, runtime::new_stream(0, 0));
  runtime::device_allocator().recordStream(c10::DataPtr(), runtime::new_stream(0, 0));
}

void releases_on_a_failed_device_neither_throw_nor_lose_memory() {
  const c10::Stream stream = runtime::new_stream(1, 0);
  c10::DataPtr device = runtime::device_allocator().allocate(kSize);
  c10::DataPtr before = runtime::device_allocator().allocate(kSize);
  c10::DataPtr pinned = runtime::host_allocator().allocate(kSize);
  runtime::device_allocator().recordStream(device, stream);
  runtime::device_allocator().recordStream(before, stream);
  check(runtime::host_allocator().record_event(pinned.get(), pinned.get_context(), stream), "pinned memory is known");
  Gate gate(stream);
  before = {};
  runtime::launch("throws", stream, [] { throw std::runtime_error("on purpose"); });
  gate.open();
  check_throws<c10::AcceleratorError>([&] { runtime::synchronize_stream(stream); }, "a kernel that throws is reported");
  device = {};
  pinned = {};
  runtime::device_allocator().allocate(kSize);  // looks at the marks, on a device that answers nothing
  runtime::host_allocator().allocate(kSize);
  runtime::device_allocator().emptyCache({0, 0});
  runtime::reset_device(1);
  runtime::device_allocator().emptyCache({0, 0});
  runtime::host_allocator().empty_cache();
  check(active_bytes() == 0, "memory released on a failed device comes back");
  check(runtime::device_allocator().getDeviceStats(0).reserved_bytes[0].current == 0, "and can be given back");
  check(runtime::host_allocator().get_stats().allocated_bytes.current == 0, "pinned memory too");
}

void a_launch_returns_before_the_kernel_ends() {
  std::atomic<bool> open{false};
  std::atomic<int> order{0};
  runtime::launch("gate", c10::DeviceIndex{0}, [&] {
    while (!open) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    order = 1;
  });
  runtime::launch("after", c10::DeviceIndex{0}, [&] { order = order == 1 ? 2 : -1; });
  check(!runtime::query_stream(runtime::current_stream(0)), "the kernel runs while the host goes on");
  check(order == 0, "it has not ended");
  open = true;
  runtime::synchronize_device(0);
  check(order == 2, "kernels of a stream run in order");
}

void what_a_kernel_warns_of_is_written_nowhere() {
  class Counts final : public c10::WarningHandler {
   public:
    int count = 0;
    void process(const c10::Warning& /*warning*/) override { ++count; }
  };
  Counts counts;
  const c10::WarningUtils::WarningHandlerGuard guard(&counts);
  int ran = 0;
  for (int i = 0; i < 2; ++i) {
    runtime::launch("warns", c10::DeviceIndex{0}, [&ran] {
      TORCH_WARN("of nothing");
      ++ran;
    });
  }
  runtime::synchronize_device(0);
  check(ran == 2 && counts.count == 0, "a kernel's warnings reach no handler");
  TORCH_WARN("on the host");
  check(counts.count == 1, "warnings of the host do");
}

void threads_may_initialize_at_once() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([i] {
      if (i % 2 == 0) {
        at::globalContext().lazyInitDevice(runtime::kDeviceType);
      } else {
        runtime::ensure_initialized();
      }
      check(runtime::is_initialized(), "initialized on return");
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

// Only the type of the device is given: which one it is, the address tells (getDeviceFromPtr()).
void a_tensor_over_memory_is_on_the_device_of_the_address() {
  const auto options = at::TensorOptions().dtype(at::kByte).device(runtime::kDeviceType);
  for (const c10::DeviceIndex index : {c10::DeviceIndex{0}, c10::DeviceIndex{1}}) {
    const runtime::CurrentDeviceGuard current(index);
    const c10::DataPtr memory = runtime::device_allocator().allocate(kSize);
    const runtime::CurrentDeviceGuard other(static_cast<c10::DeviceIndex>(1 - index));
    const at::Tensor tensor = at::from_blob(static_cast<char*>(memory.get()) + 8, {16}, options);
    check(tensor.device() == c10::Device(runtime::kDeviceType, index), "the device is that of the address");
    check(tensor.const_data_ptr() == static_cast<char*>(memory.get()) + 8, "and the memory is not copied");
  }
  char host[16] = {};
  check_throws<c10::Error>([&] { at::from_blob(host, {16}, options); }, "host memory is on no device");
}

void a_tensor_ends_where_its_storage_ends() {
  const auto options = at::TensorOptions().dtype(at::kFloat).device(runtime::kDeviceType);
  const c10::DataPtr memory = runtime::device_allocator().allocate(kSize);
  const at::Tensor fitting = at::from_blob(memory.get(), {2, 3}, {4, 1}, options);  // 7 elements from first to last
  runtime::check_storage("a test", fitting);
  fitting.unsafeGetTensorImpl()->set_storage_offset(1);
  check_throws<c10::Error>([&] { runtime::check_storage("a test", fitting); }, "one element beyond is refused");
}

std::atomic<int> before_memory_calls{0};

void a_tool_is_called_before_memory_changes() {
  runtime::ToolHooks hooks;
  hooks.before_memory = [] { ++before_memory_calls; };
  runtime::set_tool_hooks(hooks);
  runtime::device_allocator().allocate(kSize);
  check(before_memory_calls == 0, "a tool that observes no memory is not called");
  const uint64_t observer = runtime::observe_memory({[](const runtime::MemoryEvent&) {}});
  c10::DataPtr memory = runtime::device_allocator().allocate(kSize);
  check(before_memory_calls == 1, "a tool is called before an allocation");
  memory.clear();
  check(before_memory_calls == 2, "a tool is called before a release");
  runtime::stop_observing_memory(observer);
  runtime::set_tool_hooks({});
}

}  // namespace

int main() {
  threads_may_initialize_at_once();
  memory_waits_for_every_stream_that_uses_it();
  emptying_the_cache_waits_for_no_other_device();
  several_observers_get_all_events_in_order();
  wrong_observers_are_refused();
  callbacks_that_call_the_allocator_are_refused();
  a_callback_that_throws_is_not_called_again();
  recording_unknown_memory_does_nothing();
  releases_on_a_failed_device_neither_throw_nor_lose_memory();
  a_launch_returns_before_the_kernel_ends();
  a_tensor_over_memory_is_on_the_device_of_the_address();
  a_tensor_ends_where_its_storage_ends();
  a_tool_is_called_before_memory_changes();
  what_a_kernel_warns_of_is_written_nowhere();
  memory_of_launches_is_used_again();
  std::puts("all checks hold");
  return 0;
}
