// SPDX-License-Identifier: BSD-3-Clause
// Implements the launch entry for generated code.
#include "openreg/runtime/launch_entry.h"

#include <c10/util/Exception.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/enqueue.h"
#include "base/observer_callback.h"
#include "base/status_message.h"
#include "openreg/runtime/device.h"
#include "openreg/runtime/gil.h"
#include "openreg/runtime/launch.h"
#include "openreg/runtime/launch_memory.h"
#include "openreg/runtime/stream.h"

namespace openreg::runtime {

namespace {

constexpr const char* kLaunch = "orLaunchEntry.launch";

// The text of a failure. It has a fixed size, so that it needs no allocation when the host is out of memory.
using MessageBuffer = std::array<char, 2048>;

MessageBuffer& last_message() {
  thread_local MessageBuffer message{};
  return message;
}

// Sets the calling thread's text, in the format of printf(). Returns `status`.
template <class... Parts>
orError_t fail(orError_t status, const char* format, Parts... parts) noexcept {
  std::snprintf(last_message().data(), last_message().size(), format, parts...);
  return status;
}

// Returns the code of the reason why the driver is unusable: a forked child, exit, or an invalid environment variable.
// Returns orErrorUnknown if it is usable.
orError_t cause() noexcept {
  ptrdiff_t offset = 0;
  const orError_t status = orGetKernelViewOffset(&offset);
  orGetLastError();
  return status == orSuccess ? orErrorUnknown : status;
}

// Returns the result of `body`. Converts an exception into a code, and sets the calling thread's text.
template <class Body>
orError_t guarded(const char* function, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(orErrorMemoryAllocation, "%s: the host is out of memory; end other programs", function);
  } catch (const c10::AcceleratorError& error) {
    return fail(static_cast<orError_t>(error.get_error_code()), "%s", error.what_without_backtrace());
  } catch (...) {
    return fail(cause(), "%s: %s", function, current_exception_text());
  }
}

// Sets the calling thread's text to the driver's message, which contains the name of the failed function. Returns
// `status`.
orError_t fail_as_driver(orError_t status) noexcept {
  return guarded(kLaunch, [&] { return fail(status, "%s", take_message(status).c_str()); });
}

// The state that a launch owns. The arguments follow it in the same allocation, with their alignment.
struct alignas(std::max_align_t) LaunchState {
  orKernelFunction_t function;
  void* arguments;  // null if there are none
  size_t bytes;     // size of the allocation
  bool flush_denormals;
};

void release(void* state) {
  release_launch_memory(state, static_cast<LaunchState*>(state)->bytes);
}

orError_t run(void* state, char* message, size_t message_size) {
  try {
    const auto& launched = *static_cast<LaunchState*>(state);
    prepare_engine_thread(launched.flush_denormals);
    return launched.function(launched.arguments, message, message_size);
  } catch (...) {
    return describe_exception(message, message_size);
  }
}

LaunchState* make_launch_state(const orLaunch& launch) {
  const size_t alignment = launch.arguments_alignment;
  const size_t slack = alignment > alignof(std::max_align_t) ? alignment : 0;
  const size_t bytes = sizeof(LaunchState) + launch.arguments_size + slack;
  auto* const launched = static_cast<LaunchState*>(allocate_launch_memory(bytes));
  *launched = {launch.function, nullptr, bytes, flushes_denormals()};
  if (launch.arguments_size > 0) {
    auto address = reinterpret_cast<uintptr_t>(launched + 1);
    if (slack > 0) {
      address = (address + alignment - 1) & ~(alignment - 1);
    }
    launched->arguments = reinterpret_cast<void*>(address);
    std::memcpy(launched->arguments, launch.arguments, launch.arguments_size);
  }
  return launched;
}

orError_t check(const orLaunch* launch) noexcept {
  constexpr orError_t kInvalid = orErrorInvalidValue;
  if (launch == nullptr) {
    return fail(kInvalid, "%s: argument `launch` is null; pass an orLaunch", kLaunch);
  }
  if (launch->size != sizeof(orLaunch)) {
    return fail(kInvalid,
                "%s: `size` is %zu, and orLaunch has %zu bytes; set it to sizeof(orLaunch), and compile the code "
                "again if it was made for another version of the table than %d",
                kLaunch, launch->size, sizeof(orLaunch), OPENREG_LAUNCH_ENTRY_VERSION);
  }
  if (launch->name == nullptr) {
    return fail(kInvalid, "%s: `name` is null; give the name that errors shall show", kLaunch);
  }
  if (launch->function == nullptr) {
    return fail(kInvalid, "%s: `function` of kernel '%s' is null; give the function to run", kLaunch, launch->name);
  }
  if (launch->arguments_size > OPENREG_MAX_LAUNCH_ARGUMENTS) {
    return fail(kInvalid,
                "%s: kernel '%s' has %zu bytes of arguments, more than %d (OPENREG_MAX_LAUNCH_ARGUMENTS); pass the "
                "address of memory instead",
                kLaunch, launch->name, launch->arguments_size, OPENREG_MAX_LAUNCH_ARGUMENTS);
  }
  if (launch->arguments == nullptr && launch->arguments_size > 0) {
    return fail(kInvalid, "%s: `arguments` of kernel '%s' is null, and `arguments_size` is %zu; pass 0 for none",
                kLaunch, launch->name, launch->arguments_size);
  }
  const size_t alignment = launch->arguments_alignment;
  if ((alignment & (alignment - 1)) != 0 || alignment > OPENREG_MAX_LAUNCH_ALIGNMENT) {
    return fail(kInvalid,
                "%s: `arguments_alignment` of kernel '%s' is %zu; give 0 or a power of two up to %d "
                "(OPENREG_MAX_LAUNCH_ALIGNMENT)",
                kLaunch, launch->name, alignment, OPENREG_MAX_LAUNCH_ALIGNMENT);
  }
  if (launch->stream == nullptr && (launch->device < -1 || launch->device >= device_count())) {
    return fail(orErrorInvalidDevice,
                "%s: `device` of kernel '%s' is %d, and there are %d devices; give -1 for the "
                "current one",
                kLaunch, launch->name, launch->device, static_cast<int>(device_count()));
  }
  return orSuccess;
}

// Only enqueue_kernel() is outside of guarded(). It may acquire the GIL after it has blocked, which may unwind the
// stack.
orError_t launch(const orLaunch* launch) {
  KernelState state(nullptr, &release);
  orStream_t stream = nullptr;
  const orError_t prepared = guarded(kLaunch, [&] {
    const orError_t checked = check(launch);
    if (checked == orSuccess) {
      refuse_inside_callback(kLaunch);
      stream = launch->stream;
      if (stream == nullptr) {
        stream = native_handle(current_stream(static_cast<c10::DeviceIndex>(launch->device)));
      }
      state.reset(make_launch_state(*launch));
    }
    return checked;
  });
  if (prepared != orSuccess) {
    return prepared;
  }
  const orKernel kernel{launch->name, &run, state.get(), &release};
  const orError_t status = enqueue_kernel(stream, kernel, launch->operands, launch->operand_count, state);
  if (status == orSuccess) {
    return orSuccess;
  }
  if (status == orErrorDeinitialized) {
    park_if_finalized();
  }
  return fail_as_driver(status);
}

// Returns the table, which the first call makes. The caller has initialized the device.
const orLaunchEntry& table() {
  static const orLaunchEntry entry{
      sizeof(orLaunchEntry), OPENREG_LAUNCH_ENTRY_VERSION, reinterpret_cast<intptr_t>(kernel_view(nullptr)), &launch,
      &orOperandsWanted,     &orGetLaunchEntryMessage};
  return entry;
}

}  // namespace

}  // namespace openreg::runtime

orError_t orGetLaunchEntry(unsigned int version, const orLaunchEntry** entry) {
  namespace runtime = openreg::runtime;
  if (entry == nullptr) {
    return runtime::fail(orErrorInvalidValue, "%s: argument `entry` is null; pass the address of a pointer", __func__);
  }
  *entry = nullptr;
  if (version != OPENREG_LAUNCH_ENTRY_VERSION) {
    return runtime::fail(orErrorNotSupported,
                         "%s: version %u of the launch entry was requested, and this runtime serves version %d only; "
                         "compile the code again, or install the openreg-runtime that it was made for",
                         __func__, version, OPENREG_LAUNCH_ENTRY_VERSION);
  }
  return runtime::guarded(__func__, [&] {
    runtime::ensure_initialized();
    *entry = &runtime::table();
    return orSuccess;
  });
}

const char* orGetLaunchEntryMessage(void) {
  return openreg::runtime::last_message().data();
}
