// SPDX-License-Identifier: BSD-3-Clause
// Another implementation of openreg.h, as a vendor's would be: it has every function of the header, and nothing else of
// the simulated device. Each forwards to the driver that FORWARD_TO names, and is counted.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "openreg.h"

namespace {

std::atomic<unsigned long long> calls{0};

void* find(const char* name) {
  static void* const driver = dlopen(std::getenv("FORWARD_TO"), RTLD_NOW | RTLD_LOCAL);
  void* const function = driver == nullptr ? nullptr : dlsym(driver, name);
  if (function == nullptr) {
    std::fprintf(stderr, "%s cannot be forwarded: %s\n", name, dlerror());
    std::abort();
  }
  return function;
}

}  // namespace

extern "C" OPENREG_API unsigned long long forwarded_calls(void) {
  return calls;
}

#define FORWARD(result, name, parameters, arguments)                                 \
  result name parameters {                                                           \
    static const auto forwarded_to = reinterpret_cast<decltype(&name)>(find(#name)); \
    ++calls;                                                                         \
    return forwarded_to arguments;                                                   \
  }

#include "forward.inc"  // one FORWARD for each function, which test_other_driver.py reads from openreg.h
