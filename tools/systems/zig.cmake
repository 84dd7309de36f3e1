# SPDX-License-Identifier: BSD-3-Clause
# A CMake toolchain file: the PyPI package ziglang as the compiler for another operating system.
#
#   cmake -S packages/openreg-runtime/tests/stress --toolchain tools/systems/zig.cmake
#     -DOPENREG_CROSS_TARGET=<cpu>-<system>[-<abi>] -DOPENREG_CROSS_PYTHON=<interpreter that has ziglang>

# CMake reads this file again in the projects with which it tries the compiler.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES OPENREG_CROSS_TARGET OPENREG_CROSS_PYTHON)

string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR "${OPENREG_CROSS_TARGET}")
if(OPENREG_CROSS_TARGET MATCHES "windows")
  set(CMAKE_SYSTEM_NAME Windows)
elseif(OPENREG_CROSS_TARGET MATCHES "macos")
  set(CMAKE_SYSTEM_NAME Darwin)
  # CMake insists on this tool, which only an installation would call.
  set(CMAKE_INSTALL_NAME_TOOL "${CMAKE_COMMAND};-E;true")
  # zig's linker crashes over the form that CMake takes for modules, -bundle; it heeds the last of two forms.
  set(CMAKE_MODULE_LINKER_FLAGS_INIT -dynamiclib)
else()
  set(CMAKE_SYSTEM_NAME Linux)
endif()
set(CMAKE_CXX_COMPILER "${OPENREG_CROSS_PYTHON};-m;ziglang;c++;-target;${OPENREG_CROSS_TARGET}")
