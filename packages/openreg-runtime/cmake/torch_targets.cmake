# SPDX-License-Identifier: BSD-3-Clause
#
# The few imported targets that an accelerator needs from an installed torch wheel, and extension modules on top of them.
# library_defaults.cmake of the driver has the helpers that need no torch.
#
# Why not find_package(Torch): for a CUDA build of torch (what PyPI serves on Linux) it insists on a
# CUDA toolkit, even from a consumer that contains no CUDA. The headers and libraries needed here
# are the same in every build of torch, so this module names them itself.
#
# Use in packages/openreg-runtime/CMakeLists.txt
#
#   include(cmake/torch_targets.cmake)
#   openreg_find_torch(VERSION 2.13 NEEDED_BY "openreg-runtime")
#   openreg_library_defaults(<target> RPATH . ../../torch/lib)
#   openreg_add_python_module(_C SOURCES csrc/python/module.cpp LINK openreg_runtime RPATH lib
#                             ../torch/lib)
#
# Use in every other native package: find_package(openreg_runtime) includes this file and has
# called openreg_find_torch already.
#
#   find_package(openreg_runtime REQUIRED CONFIG)
#   openreg_add_python_module(_C SOURCES csrc/module.cpp ... LINK openreg::runtime)
#   openreg_install_python_modules(_C)   # build_record.cmake
#
# Defines
#
#   openreg_find_torch(VERSION <major.minor> NEEDED_BY <text> [ERROR_VARIABLE <variable>])
#     Finds torch through the Python interpreter of this build (-DPython_EXECUTABLE=... chooses
#     another), without importing it: importing torch may load the very backend that is being built.
#     Makes torch::c10, torch::torch_cpu and torch::torch_python. Sets OPENREG_TORCH_VERSION and
#     OPENREG_TORCH_DIR. Without ERROR_VARIABLE a missing or unsuitable torch ends the configuration;
#     with it the variable receives the message, empty after success.
#
#   openreg_add_python_module(<target> SOURCES <file>... [LINK <target>...] [RPATH <directory>...])
#     An extension module whose file is named after the target. Links torch_python, whose include
#     directories carry torch's own pybind11 headers: use those and no other copy, because types
#     that cross into torch's bindings have to be torch's. The default RPATH reaches the libraries
#     of the openreg-runtime wheel and those of torch.

include_guard(DIRECTORY)

# Prints "<directory>|<version>" of the torch that the interpreter would import, the version of a debug build with a
# word about that. The first entry of sys.path is dropped because with -c it is the current directory.
set(
  OPENREG_LOCATE_TORCH
  [==[
import importlib.util, pathlib, runpy, sys
sys.path.pop(0)
spec = importlib.util.find_spec("torch")
if spec is not None and spec.origin is not None:
    root = pathlib.Path(spec.origin).parent
    version = runpy.run_path(str(root / "version.py"))
    kind = ", a debug build (torch.version.debug)" if version.get("debug") else ""
    print(root.as_posix(), version["__version__"] + kind, sep="|", end="")
]==]
)

# Sets <directory_variable> and <version_variable> in the caller, both empty where torch is missing.
function(openreg_locate_torch directory_variable version_variable)
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "${OPENREG_LOCATE_TORCH}"
    OUTPUT_VARIABLE answer
    ERROR_VARIABLE problem
    RESULT_VARIABLE status
  )
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "Looking for torch with ${Python_EXECUTABLE} failed:\n${problem}")
  endif()
  string(REGEX REPLACE "[|].*" "" directory "${answer}")
  string(REGEX REPLACE ".*[|]" "" version "${answer}")
  set(${directory_variable} "${directory}" PARENT_SCOPE)
  set(${version_variable} "${version}" PARENT_SCOPE)
endfunction()

# The message about the torch at hand, or nothing where its version is the one wanted.
function(openreg_explain_torch found wanted needed_by message_variable)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" found_minor "${found}")
  if(found_minor STREQUAL wanted AND NOT found MATCHES "debug build")
    set(${message_variable} "" PARENT_SCOPE)
    return()
  endif()
  set(options "")
  if(found STREQUAL "")
    set(cause "no torch is installed for it.")
  elseif(found_minor STREQUAL wanted)
    set(cause "the torch installed for it is ${found}, whose C++ objects have another layout.")
    set(options "--force-reinstall ")
  else()
    set(cause "the torch installed for it is ${found}.")
  endif()
  # What pip calls the folder of an isolated build's own packages, which hides all others.
  if("$ENV{PYTHONPATH}" MATCHES "pip-build-env-")
    string(APPEND cause " This is an isolated build, which does not see the packages that are installed.")
  endif()
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
  set(
    ${message_variable}
    "${needed_by} needs torch ${wanted}.*, and the Python interpreter ${Python_EXECUTABLE} does \
not have it: ${cause}\n\
Install it:\n    ${Python_EXECUTABLE} -m pip install ${options}\"torch==${wanted}.*\"\n\
then build against that very torch:\n    pip install --no-build-isolation <package>\n\
An isolated build (pip's default) downloads a torch of its own and compiles against that one.\n\
A build with plain CMake chooses another interpreter with -DPython_EXECUTABLE=<path>."
    PARENT_SCOPE
  )
endfunction()

# One imported library of the torch wheel.
function(openreg_import_torch_library name directory version)
  find_library(path NAMES ${name} PATHS "${directory}/lib" NO_DEFAULT_PATH NO_CACHE)
  if(NOT path)
    message(
      FATAL_ERROR
      "torch in ${directory} has no library '${name}' under lib/. Reinstall it: "
      "pip install --force-reinstall \"torch==${version}\""
    )
  endif()
  add_library(torch::${name} UNKNOWN IMPORTED)
  set_target_properties(
    torch::${name}
    PROPERTIES
      IMPORTED_LOCATION "${path}"
      INTERFACE_COMPILE_FEATURES cxx_std_20
      INTERFACE_INCLUDE_DIRECTORIES "${directory}/include;${directory}/include/torch/csrc/api/include"
  )
endfunction()

function(openreg_find_torch)
  cmake_parse_arguments(arg "" "VERSION;NEEDED_BY;ERROR_VARIABLE" "" ${ARGN})
  openreg_locate_torch(directory version)
  openreg_explain_torch("${version}" "${arg_VERSION}" "${arg_NEEDED_BY}" message)
  if(arg_ERROR_VARIABLE)
    set(${arg_ERROR_VARIABLE} "${message}" PARENT_SCOPE)
  elseif(message)
    message(FATAL_ERROR "${message}")
  endif()
  if(message)
    return()
  endif()

  set(OPENREG_TORCH_DIR "${directory}" PARENT_SCOPE)
  set(OPENREG_TORCH_VERSION "${version}" PARENT_SCOPE)
  if(TARGET torch::c10)
    return()
  endif()
  message(STATUS "Found torch ${version}: ${directory}")
  openreg_import_torch_library(c10 "${directory}" "${version}")
  openreg_import_torch_library(torch_cpu "${directory}" "${version}")
  openreg_import_torch_library(torch_python "${directory}" "${version}")
  target_link_libraries(torch::torch_cpu INTERFACE torch::c10)
  target_link_libraries(torch::torch_python INTERFACE torch::torch_cpu)
  if(NOT MSVC)
    # __FILE__ in torch's headers begins with "torch", whatever the folder that they lie in.
    cmake_path(GET directory PARENT_PATH site_packages)
    file(REAL_PATH "${directory}" real) # gcc resolves links in the paths of system headers
    target_compile_options(
      torch::c10
      INTERFACE "-ffile-prefix-map=${site_packages}/=" "-ffile-prefix-map=${real}=torch"
    )
  endif()
  if(UNIX AND NOT APPLE)
    # libtorch_cpu of a CUDA build refers to libraries of other wheels, which the loader finds and
    # the linker of an executable does not have to.
    target_link_options(
      torch::torch_cpu
      INTERFACE "$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:LINKER:--allow-shlib-undefined>"
    )
    openreg_match_cxx11_abi("${directory}")
  endif()
endfunction()

# The standard library's string layout has to be torch's. libc10 shows which it has: the symbol of
# c10::detail::torchCheckFail takes a std::string, whose mangled name differs between the layouts.
function(openreg_match_cxx11_abi directory)
  file(STRINGS "${directory}/lib/libc10.so" symbols REGEX "torchCheckFail.*basic_string")
  if(symbols MATCHES "__cxx11")
    set(abi 1)
  else()
    set(abi 0)
  endif()
  target_compile_definitions(torch::c10 INTERFACE _GLIBCXX_USE_CXX11_ABI=${abi})
endfunction()

function(openreg_add_python_module target)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;RPATH" ${ARGN})
  if(NOT arg_RPATH)
    set(arg_RPATH ../openreg_runtime/lib ../torch/lib)
  endif()
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
  python_add_library(${target} MODULE WITH_SOABI ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LINK} torch::torch_python)
  openreg_library_defaults(${target} RPATH ${arg_RPATH})
endfunction()
