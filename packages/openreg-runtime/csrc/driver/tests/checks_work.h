// SPDX-License-Identifier: BSD-3-Clause
// Tests of streams, events, host functions, graphs and semaphores, and of kernels that fail.
#pragma once

#include <cstdio>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "checks_common.h"
#include "openreg.h"

namespace checks {

inline void a_stream_runs_in_order() {
  constexpr int kCount = 20000;  // above the capacity of a stream, so that launches block
  std::vector<int> order;
  std::vector<int> expected(kCount);
  std::iota(expected.begin(), expected.end(), 0);
  orStream_t stream = make_stream();
  for (int i = 0; i < kCount; ++i) {
    launch(stream, [&order, i] { order.push_back(i); });
  }
  CHECK_OK(orStreamSynchronize(stream));
  CHECK(order == expected);
  CHECK_OK(orStreamDestroy(stream));
  CHECK(orStreamQuery(stream) == orErrorInvalidResourceHandle);
}

inline void an_attempt_to_launch_does_not_wait_for_a_full_stream() {
  orStream_t stream = make_stream();
  Gate gate(stream);
  int ran = 0;
  const orKernel kernel{"attempt", [](void* count, char*, size_t) { return ++*static_cast<int*>(count), orSuccess; },
                        &ran, nullptr};
  int taken = 0;
  while (orTryLaunchKernel(stream, &kernel) == orSuccess) {
    ++taken;
  }
  CHECK(orTryLaunchKernel(stream, &kernel) == orErrorNotReady);
  CHECK(ran == 0 && taken > 1000);
  gate.open();
  CHECK_OK(orLaunchKernel(stream, &kernel));  // blocks until the stream is no longer full
  CHECK_OK(orStreamSynchronize(stream));
  CHECK(ran == taken + 1);
  CHECK_OK(orTryLaunchKernel(stream, &kernel));
  CHECK_OK(orStreamDestroy(stream));
  CHECK_OK(orDeviceSynchronize());
}

inline void an_event_orders_streams_of_two_devices() {
  orStream_t source = make_stream();
  CHECK_OK(orSetDevice(1));
  orStream_t target = make_stream();
  orEvent_t event = nullptr;
  CHECK_OK(orEventCreate(&event));
  Gate gate(source);
  std::string order;
  launch(source, [&] { order += "source "; });
  CHECK_OK(orEventRecord(event, source));
  CHECK_OK(orStreamWaitEvent(target, event, 0));
  launch(target, [&] { order += "target"; });
  CHECK(orEventQuery(event) == orErrorNotReady && orStreamQuery(target) == orErrorNotReady);
  gate.open();
  CHECK_OK(orStreamSynchronize(target));
  CHECK_OK(orEventSynchronize(event));
  CHECK(order == "source target");
  CHECK_OK(orEventDestroy(event));
}

inline void priorities_choose_between_ready_streams() {
  Gate gate(nullptr);
  std::string order;
  for (const int priority : {0, -1, -3, -2}) {
    launch(make_stream(priority), [&order, priority] { order += std::to_string(-priority); });
  }
  gate.open();
  CHECK_OK(orDeviceSynchronize());
  CHECK(order == "3210");
}

inline void a_delay_takes_its_time() {
  orEvent_t events[2];
  for (orEvent_t& event : events) {
    CHECK_OK(orEventCreateWithFlags(&event, orEventEnableTiming));
  }
  CHECK_OK(orEventRecord(events[0], nullptr));
  CHECK_OK(orStreamDelay(nullptr, 50'000'000));
  CHECK_OK(orEventRecord(events[1], nullptr));
  CHECK_OK(orEventSynchronize(events[1]));
  float milliseconds = 0;
  CHECK_OK(orEventElapsedTime(&milliseconds, events[0], events[1]));
  CHECK(milliseconds >= 50);
}

inline void threads_that_come_and_go_have_devices_of_their_own() {
  CHECK_OK(orSetDevice(1));
  for (int i = 0; i < 200; ++i) {
    std::thread([] {
      int device = -1;
      CHECK_OK(orGetDevice(&device));
      CHECK(device == 0);
      int seen = -1;
      CHECK_OK(orSetDevice(1));
      launch(nullptr, [&seen] { CHECK_OK(orGetDevice(&seen)); });
      CHECK_OK(orStreamSynchronize(nullptr));
      CHECK(seen == 1);
    }).join();
  }
}

inline void host_functions_keep_their_place() {
  std::string order;
  launch(nullptr, [&] { order += "kernel "; });
  CHECK_OK(orLaunchHostFunc(nullptr, [](void* text) { *static_cast<std::string*>(text) += "host "; }, &order));
  launch(nullptr, [&] { order += "kernel"; });
  CHECK_OK(orDeviceSynchronize());
  CHECK(order == "kernel host kernel");
}

inline void a_graph_repeats_what_was_recorded() {
  orStream_t stream = make_stream();
  void* address = allocate(kPage);
  char* bytes = view(address);
  CHECK_OK(orMemset(address, 0, kPage));
  CHECK_OK(orStreamBeginCapture(stream, orStreamCaptureModeGlobal));
  launch(stream, [=] { ++bytes[0]; });
  CHECK_OK(orMemcpyAsync(static_cast<char*>(address) + 1, address, 1, orMemcpyDeviceToDevice, stream));
  orGraph_t graph = nullptr;
  CHECK_OK(orStreamEndCapture(stream, &graph));
  CHECK(bytes[0] == 0);
  for (int i = 0; i < 3; ++i) {
    CHECK_OK(orGraphLaunch(graph, stream));
  }
  CHECK_OK(orStreamSynchronize(stream));
  CHECK(bytes[0] == 3 && bytes[1] == 3);
  CHECK_OK(orGraphDebugDotPrint(graph, "graph.dot"));
  std::FILE* file = std::fopen("graph.dot", "r");
  CHECK(file != nullptr && std::fgetc(file) == 'd');  // the file begins with "digraph"
  std::fclose(file);
  CHECK_OK(orGraphDestroy(graph));
  CHECK_OK(orFree(address));
}

inline void a_stream_waits_for_a_value_of_the_host() {
  orSemaphore_t semaphore = nullptr;
  CHECK_OK(orSemaphoreCreate(&semaphore, 0));
  orStream_t stream = make_stream();
  std::string order;
  CHECK_OK(orStreamWaitSemaphore(stream, semaphore, 1));
  launch(stream, [&] { order += "behind"; });
  launch(nullptr, [&] { order += "other "; });
  CHECK_OK(orStreamSynchronize(nullptr));
  CHECK(orStreamQuery(stream) == orErrorNotReady && orSemaphoreDestroy(semaphore) == orErrorIllegalState);
  std::thread([&] { CHECK_OK(orSemaphoreSignal(semaphore, 1)); }).join();
  CHECK_OK(orStreamSynchronize(stream));
  CHECK(order == "other behind");
  CHECK_OK(orSemaphoreFail(semaphore, orErrorUnknown, "gone"));
  CHECK_OK(orStreamWaitSemaphore(stream, semaphore, 2));
  CHECK(orStreamSynchronize(stream) == orErrorLaunchFailure && last_message_has("gone"));
  CHECK_OK(orDeviceReset());
  CHECK_OK(orSemaphoreDestroy(semaphore));
}

inline void a_failed_kernel_stops_its_device_until_a_reset() {
  const orKernel broken{"broken", stress::failing_kernel, nullptr, nullptr};
  CHECK_OK(orLaunchKernel(nullptr, &broken));
  CHECK(orDeviceSynchronize() == orErrorLaunchFailure);
  CHECK(last_message_has("on purpose") && last_message_has("broken"));
  CHECK(orMemset(nullptr, 0, 0) == orErrorLaunchFailure || orDeviceGetError(0) == orErrorLaunchFailure);
  CHECK_OK(orSetDevice(1));
  CHECK_OK(orDeviceSynchronize());
  CHECK_OK(orSetDevice(0));
  CHECK_OK(orDeviceReset());
  bool ran = false;
  launch(nullptr, [&] { ran = true; });
  CHECK_OK(orDeviceSynchronize());
  CHECK(ran);
}

inline void injected_faults_come_once() {
  CHECK_OK(orSetFaults("alloc:2,launch:1"));
  void* first = allocate(kPage);
  void* second = nullptr;
  CHECK(orMalloc(&second, kPage) == orErrorMemoryAllocation);
  second = allocate(kPage);
  bool ran = false;
  launch(nullptr, [&] { ran = true; });
  CHECK(orDeviceSynchronize() == orErrorLaunchFailure);
  CHECK(!ran);
  CHECK_OK(orDeviceReset());
  CHECK_OK(orFree(first));
  CHECK_OK(orFree(second));
}

}  // namespace checks
