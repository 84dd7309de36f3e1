# SPDX-License-Identifier: BSD-3-Clause
#
# Records what the native part of a package was compiled for, in a file that is read without loading that part.
#
#   openreg_install_python_modules(<target>...)
#     Installs extension modules into the import package, and beside them _build.json: the ABI number of the
#     openreg-runtime headers (kAbiVersion in openreg/runtime/version.h), the version of the torch that they were
#     compiled with, and the suffix of the modules' names, which names the Python and the system.
#     openreg_runtime.require_matching_build() reads it before the modules are loaded, because the loader would only
#     report an undefined symbol, and Python a missing module.
#
# Needs OPENREG_TORCH_VERSION (openreg_find_torch) and OPENREG_VERSION_HEADER, the path of version.h;
# find_package(openreg_runtime) sets both.

include_guard(DIRECTORY)

function(openreg_install_python_modules)
  file(STRINGS "${OPENREG_VERSION_HEADER}" line REGEX "kAbiVersion = [0-9]+")
  string(REGEX MATCH "[0-9]+" OPENREG_ABI_VERSION "${line}")
  if(OPENREG_ABI_VERSION STREQUAL "")
    message(FATAL_ERROR "${OPENREG_VERSION_HEADER} does not define kAbiVersion")
  endif()
  list(GET ARGN 0 module)
  get_target_property(OPENREG_EXTENSION_SUFFIX ${module} SUFFIX)
  # A build that goes on after the header changed compiles against the new one.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${OPENREG_VERSION_HEADER}")
  file(
    CONFIGURE
    OUTPUT _build.json
    CONTENT
      [[{
  "abi_version": @OPENREG_ABI_VERSION@,
  "torch_version": "@OPENREG_TORCH_VERSION@",
  "extension_suffix": "@OPENREG_EXTENSION_SUFFIX@"
}
]]
    @ONLY
  )
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/_build.json" DESTINATION .)
  install(TARGETS ${ARGN} DESTINATION .)
endfunction()
