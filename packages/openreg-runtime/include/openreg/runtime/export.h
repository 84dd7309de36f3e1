// SPDX-License-Identifier: BSD-3-Clause
// The macro that exports symbols of the runtime library.
#pragma once

#if defined(_WIN32)
#if defined(OPENREG_BUILD_RUNTIME)
#define OPENREG_RUNTIME_API __declspec(dllexport)
#else
#define OPENREG_RUNTIME_API __declspec(dllimport)
#endif
#else
#define OPENREG_RUNTIME_API __attribute__((visibility("default")))
#endif
