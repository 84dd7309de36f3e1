# SPDX-License-Identifier: BSD-3-Clause
#
# What the wheel of openreg-runtime carries besides Python: libraries, headers and a CMake package.
# Directories are relative to the import package (wheel.install-dir in pyproject.toml):
#
#   _C.*, _build.json             the extension module, and what it was compiled for
#   lib/                          libopenreg, libopenreg_runtime
#   include/                      openreg.h, openreg/runtime/*.h
#   lib/cmake/openreg_runtime/    find_package(openreg_runtime)
#   lib/cmake/openreg_driver/     find_package(openreg_driver): the device alone, installed by csrc/driver/CMakeLists.txt

include(CMakePackageConfigHelpers)

set(OPENREG_CMAKE_DIR lib/cmake/openreg_runtime)

openreg_install_python_modules(_C)
install(
  TARGETS openreg_runtime
  EXPORT openreg_runtime-targets
  RUNTIME DESTINATION lib
  LIBRARY DESTINATION lib
  ARCHIVE DESTINATION lib
  FILE_SET HEADERS DESTINATION include
)
install(EXPORT openreg_runtime-targets NAMESPACE openreg:: DESTINATION ${OPENREG_CMAKE_DIR})

set(OPENREG_INCLUDE_DIR include)
configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/openreg_runtime-config.cmake.in"
  "${CMAKE_CURRENT_BINARY_DIR}/openreg_runtime-config.cmake"
  INSTALL_DESTINATION ${OPENREG_CMAKE_DIR}
  PATH_VARS OPENREG_INCLUDE_DIR
)
write_basic_package_version_file(
  "${CMAKE_CURRENT_BINARY_DIR}/openreg_runtime-config-version.cmake"
  COMPATIBILITY SameMinorVersion
)
install(
  FILES
    "${CMAKE_CURRENT_BINARY_DIR}/openreg_runtime-config.cmake"
    "${CMAKE_CURRENT_BINARY_DIR}/openreg_runtime-config-version.cmake"
    "${CMAKE_CURRENT_LIST_DIR}/build_record.cmake"
    "${CMAKE_CURRENT_LIST_DIR}/torch_targets.cmake"
    "${CMAKE_CURRENT_LIST_DIR}/../csrc/driver/cmake/library_defaults.cmake"
  DESTINATION ${OPENREG_CMAKE_DIR}
)
