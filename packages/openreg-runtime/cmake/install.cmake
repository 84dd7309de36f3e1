# SPDX-License-Identifier: BSD-3-Clause
#
# What the wheel of openreg-runtime carries besides Python: libraries, headers and a CMake package.
# Directories are relative to the import package (wheel.install-dir in pyproject.toml):
#
#   _C.*, _build.json             the extension module, and what it was compiled for
#   lib/                          libopenreg, libopenreg_runtime
#   include/                      openreg.h, openreg/runtime/*.h
#   lib/cmake/openreg_runtime/    find_package(openreg_runtime)
#
# The two libraries are exported apart because the driver is usable without torch, and CMake refuses
# to import a set of targets of which one refers to something that was not found.

include(CMakePackageConfigHelpers)

set(OPENREG_CMAKE_DIR lib/cmake/openreg_runtime)

openreg_install_python_modules(_C)
foreach(set IN ITEMS driver runtime)
  set(target openreg)
  if(set STREQUAL "runtime")
    set(target openreg_runtime)
  endif()
  install(
    TARGETS ${target}
    EXPORT openreg_${set}-targets
    RUNTIME DESTINATION lib
    LIBRARY DESTINATION lib
    ARCHIVE DESTINATION lib
    FILE_SET HEADERS DESTINATION include
  )
  install(EXPORT openreg_${set}-targets NAMESPACE openreg:: DESTINATION ${OPENREG_CMAKE_DIR})
endforeach()

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
  DESTINATION ${OPENREG_CMAKE_DIR}
)
