# SPDX-License-Identifier: BSD-3-Clause
#
# How every library and program of this repository is compiled.
#
#   openreg_library_defaults(<target> [RPATH <directory>...])
#     C++20 without extensions, hidden symbols, position-independent code, the project's warnings, and no path of the
#     machine that builds: __FILE__ begins with the project's name. RPATH directories are relative to the installed
#     binary ("." is its own directory).
#
#   openreg_unity_build(<files> <target>...)
#     Compiles the sources of each target in groups of <files>, each group as one translation unit, because parsing
#     PyTorch's headers takes longer than compiling the code of most sources. Therefore no two sources of a target may
#     give the same name to two things. -DOPENREG_UNITY_BUILD=OFF compiles each source alone, for faster rebuilds.

include_guard(DIRECTORY)

option(OPENREG_WARNINGS_AS_ERRORS "Compiler warnings end the build" OFF)
option(OPENREG_UNITY_BUILD "Compile several files as one translation unit" ON)

function(openreg_library_defaults target)
  cmake_parse_arguments(arg "" "" "RPATH" ${ARGN})
  if(APPLE)
    set(origin "@loader_path")
  else()
    set(origin "$ORIGIN")
  endif()
  list(TRANSFORM arg_RPATH PREPEND "${origin}/" OUTPUT_VARIABLE rpath)
  list(TRANSFORM rpath REPLACE "/\\.$" "")
  # No source is a module or imports one. Looking for them costs a run per source, and clang-scan-deps, which Apple's and
  # other Clangs come without.
  set_target_properties(
    ${target}
    PROPERTIES
      CXX_EXTENSIONS OFF
      CXX_SCAN_FOR_MODULES OFF
      CXX_VISIBILITY_PRESET hidden
      VISIBILITY_INLINES_HIDDEN ON
      POSITION_INDEPENDENT_CODE ON
      INSTALL_RPATH "${rpath}"
  )
  if(rpath)
    # Otherwise a library keeps room for the path of the folder that it was built in, and no two builds are the same.
    set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  endif()
  target_compile_features(${target} PRIVATE cxx_std_20)
  if(MSVC)
    target_compile_options(${target} PRIVATE /W4 $<$<BOOL:${OPENREG_WARNINGS_AS_ERRORS}>:/WX>)
  else()
    target_compile_options(${target} PRIVATE -Wall -Wextra $<$<BOOL:${OPENREG_WARNINGS_AS_ERRORS}>:-Werror>)
    # GCC's collector walks PyTorch's headers again and again and frees next to nothing: a sixth of a compilation.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1048576>)
    target_compile_options(${target} PRIVATE "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=${PROJECT_NAME}")
  endif()
endfunction()

function(openreg_unity_build files)
  set_target_properties(${ARGN} PROPERTIES UNITY_BUILD "${OPENREG_UNITY_BUILD}" UNITY_BUILD_BATCH_SIZE ${files})
endfunction()
