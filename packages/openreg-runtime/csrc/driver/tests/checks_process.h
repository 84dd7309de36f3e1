// SPDX-License-Identifier: BSD-3-Clause
// Tests of invalid settings, of the order of tasks that a seed selects, of process exit, and of memory that two
// processes share.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "checks_common.h"
#include "openreg.h"

namespace checks {

inline void a_refused_setting_is_named() {
  int count = 0;
  CHECK(orGetDeviceCount(&count) == orErrorInvalidConfiguration);
  CHECK(last_message_has("OPENREG_DEVICE_COUNT") && last_message_has("many"));
}

// Returns the order in which the kernels of three streams were executed, as text. The delay of an hour takes no real
// time, because a seeded schedule has a clock of its own.
inline std::string seeded_order() {
  std::string order;
  CHECK_OK(orStreamDelay(nullptr, uint64_t{3600} * 1'000'000'000));
  orStream_t streams[] = {make_stream(), make_stream(), make_stream()};
  for (int i = 0; i < 8; ++i) {
    for (int stream = 0; stream < 3; ++stream) {
      launch(streams[stream], [&order, stream] { order += static_cast<char>('a' + stream); });
    }
  }
  CHECK_OK(orDeviceSynchronize());
  return order;
}

inline void the_order_is(const char* expected) {
  CHECK(seeded_order() == expected);
}

inline void a_seed_repeats_its_order() {
  const std::string order = seeded_order();
  std::printf("order %s\n", order.c_str());
  CHECK(order.size() == 24);
  CHECK(holds_elsewhere("the_order_is " + order));
  CHECK(!holds_elsewhere("the_order_is " + std::string(order.rbegin(), order.rend()) + "?"));
}

// The main function returns while one kernel runs, others are queued, and a thread continues to call the API.
inline void a_process_ends_at_work() {
  auto* gate = new Gate(nullptr);  // lives as long as the process
  for (int i = 0; i < 1000; ++i) {
    launch(nullptr, [] {});
  }
  std::thread([] {
    while (orStreamDelay(nullptr, 1000) == orSuccess) {
    }
  }).detach();
  std::thread([gate] {
    stress::pause_milliseconds(100);
    gate->open();  // process exit waits for the kernel that runs
  }).detach();
}

// The thread that ends the process holds the device's lock.
inline void a_callback_may_end_the_process() {
  orSubscriber table{};
  table.size = sizeof(table);
  table.version = OPENREG_SUBSCRIBER_VERSION;
  table.submit = [](void*, const orTaskInfo*, uint64_t*) { std::exit(0); };
  orSubscription_t subscription = nullptr;
  CHECK_OK(orSubscribe(&table, nullptr, &subscription));
  launch(nullptr, [] {});
  CHECK(false);  // not reached
}

inline std::string as_hex(const orIpcMemHandle_t& handle) {
  std::string text;
  for (const char byte : handle.reserved) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(byte));
    text += digits;
  }
  return text;
}

inline orIpcMemHandle_t from_hex(const char* text) {
  orIpcMemHandle_t handle{};
  CHECK(std::strlen(text) == 2 * sizeof(handle.reserved));
  for (size_t i = 0; i < sizeof(handle.reserved); ++i) {
    handle.reserved[i] = static_cast<char>(std::stoi(std::string(text + 2 * i, 2), nullptr, 16));
  }
  return handle;
}

inline void the_handle_opens(const char* hex) {
  void* imported = nullptr;
  void* again = nullptr;
  CHECK_OK(orIpcOpenMemHandle(&imported, from_hex(hex), 0));
  CHECK_OK(orIpcOpenMemHandle(&again, from_hex(hex), 0));
  CHECK(download(imported, 6) == "parent" && download(again, 6) == "parent");
  char* bytes = view(imported);
  launch(nullptr, [=] { std::memcpy(bytes + kPage, "kernel of the child", 19); });
  CHECK_OK(orDeviceSynchronize());
  upload(imported, "child!");
  CHECK(orFree(imported) == orErrorInvalidDevicePointer);
  CHECK_OK(orIpcCloseMemHandle(imported));
  CHECK(download(again, 6) == "child!");
  CHECK_OK(orIpcCloseMemHandle(again));
  CHECK_OK(orFree(allocate(kCapacity)));
}

inline void the_handle_is_refused(const char* hex) {
  void* imported = nullptr;
  CHECK(orIpcOpenMemHandle(&imported, from_hex(hex), 0) == orErrorInvalidValue);
  CHECK(last_message_has("gone"));
}

inline void another_process_maps_our_memory() {
  void* before = allocate(kMiB);
  void* address = allocate(3 * kPage);
  upload(address, "parent");
  orIpcMemHandle_t handle{};
  CHECK_OK(orIpcGetMemHandle(&handle, address));
  CHECK(download(address, 6) == "parent");
  void* imported = nullptr;
  CHECK(orIpcOpenMemHandle(&imported, handle, 0) == orErrorInvalidValue);
  CHECK(last_message_has("this very process"));
  CHECK(holds_elsewhere("the_handle_opens " + as_hex(handle)));
  CHECK(download(address, 6) == "child!");
  CHECK(download(static_cast<char*>(address) + kPage, 19) == "kernel of the child");
  CHECK_OK(orFree(address));
  CHECK(holds_elsewhere("the_handle_is_refused " + as_hex(handle)));
  CHECK_OK(orFree(before));
  CHECK_OK(orFree(allocate(kCapacity)));
}

}  // namespace checks
