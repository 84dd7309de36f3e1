// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/capture.h"

#include "openreg.h"
#include "openreg/runtime/status.h"
#include "openreg/runtime/stream.h"

namespace openreg::runtime {

uint64_t capture_id(c10::Stream stream) {
  orStreamCaptureStatus status = orStreamCaptureStatusNone;
  uint64_t id = 0;
  OPENREG_CHECK(orStreamGetCaptureInfo(native_handle(stream), &status, &id));
  return id;
}

bool is_capturing(c10::Stream stream) {
  return capture_id(stream) != 0;
}

void check_stream_not_capturing(const char* operation, c10::Stream stream) {
  TORCH_CHECK(!is_capturing(stream), operation,
              " cannot be captured: it needs its result on the host, and a capturing stream of openreg:",
              static_cast<int>(stream.device_index()),
              " records work without running it. Take it out of the capture, or use operators that stay on the device");
}

}  // namespace openreg::runtime
