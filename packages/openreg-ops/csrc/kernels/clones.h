// SPDX-License-Identifier: BSD-3-Clause
// The macro OPENREG_CLONES before a function compiles it three times: for x86-64-v4 (AVX-512), for x86-64-v3 (AVX2) and
// for every x86-64 processor. The loader selects the version for the processor. If the compiler or the loader does not
// support this, there is one version, which runs on every processor of the architecture.
//
// REAL HW: the chip's compiler generates code for its vector units.
#pragma once

#ifdef OPENREG_HAS_CLONES  // defined by CMakeLists.txt
#define OPENREG_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define OPENREG_CLONES
#endif
