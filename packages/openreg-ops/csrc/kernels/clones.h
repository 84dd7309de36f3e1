// SPDX-License-Identifier: BSD-3-Clause
// OPENREG_CLONES before a function compiles it several times, for the vector units that the processor may have; the
// loader picks one. Without the compiler's support there is one version, for every processor of the architecture.
//
// REAL HW: the compiler of the chip knows its vector units.
#pragma once

#ifdef OPENREG_HAS_CLONES  // CMakeLists.txt finds out
#define OPENREG_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define OPENREG_CLONES
#endif
