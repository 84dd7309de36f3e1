// SPDX-License-Identifier: BSD-3-Clause
#include "launch/run_and_wait.h"

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <exception>

#include "openreg/runtime/capture.h"
#include "openreg/runtime/launch.h"
#include "openreg/runtime/sync_debug.h"

namespace openreg::ops {

void check_sync_allowed(const char* name, c10::Stream stream) {
  runtime::check_stream_not_capturing(name, stream);
  runtime::warn_or_error_on_sync(name, stream.device());
}

void run_and_wait(const char* name, c10::Stream stream, c10::function_ref<void()> function,
                  const runtime::Operands* operands) {
  std::exception_ptr failure;
  const auto run = [&] {
    try {
      function();
    } catch (c10::Error& error) {
      error.add_context(c10::str(name, " on ", stream.device()));
      failure = std::current_exception();
    } catch (...) {
      failure = std::current_exception();
    }
  };
  runtime::launch(name, stream, run, operands);
  runtime::synchronize_stream(stream);
  if (failure) {
    std::rethrow_exception(failure);
  }
}

}  // namespace openreg::ops
