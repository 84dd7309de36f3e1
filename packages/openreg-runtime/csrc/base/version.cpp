// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/version.h"

#include <c10/util/Exception.h>

namespace openreg::runtime {

int abi_version() {
  return kAbiVersion;
}

void require_abi_version(const char* package, int compiled) {
  if (compiled == kAbiVersion) {
    return;
  }
  const auto message =
      c10::str(package, " was compiled for version ", compiled,
               " of the openreg-runtime headers, but the installed openreg-runtime has version ", kAbiVersion,
               ". Install matching packages: pip install --upgrade openreg-runtime ", package);
  throw c10::Error({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, message);
}

}  // namespace openreg::runtime
