# SPDX-License-Identifier: BSD-3-Clause
#
# The simulated device, libopenreg: the one list of its sources. It needs neither torch nor Python, so that it can be
# built alone: for another operating system, under a sanitizer, or by who only wants the C API.
#
#   include(cmake/torch_targets.cmake)   # for openreg_library_defaults(); nothing in it looks for torch by itself
#   include(cmake/driver.cmake)
#   openreg_add_driver()
#
# Defines
#
#   openreg_add_driver()
#     Makes the shared library `openreg`, with the alias openreg::openreg. It exports the functions of openreg.h and
#     nothing else, whatever the templates of the standard library say about their own visibility.

include_guard(DIRECTORY)

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH OPENREG_PACKAGE_DIR)
set(OPENREG_DRIVER_HEADER include/openreg.h)
set(
  OPENREG_DRIVER_SOURCES
  csrc/driver/address_space.cpp
  csrc/driver/address_space.h
  csrc/driver/api_device.cpp
  csrc/driver/api_event.cpp
  csrc/driver/api_graph.cpp
  csrc/driver/api_ipc.cpp
  csrc/driver/api_launch.cpp
  csrc/driver/api_memory.cpp
  csrc/driver/api_observer.cpp
  csrc/driver/api_semaphore.cpp
  csrc/driver/api_stream.cpp
  csrc/driver/busy_meter.h
  csrc/driver/captures.cpp
  csrc/driver/captures.h
  csrc/driver/clock.h
  csrc/driver/command_processor.cpp
  csrc/driver/command_processor.h
  csrc/driver/completions.h
  csrc/driver/deadlines.cpp
  csrc/driver/deadlines.h
  csrc/driver/demand.h
  csrc/driver/device.cpp
  csrc/driver/device.h
  csrc/driver/device_memory.cpp
  csrc/driver/device_memory.h
  csrc/driver/dispatcher.cpp
  csrc/driver/dispatcher.h
  csrc/driver/driver.cpp
  csrc/driver/driver.h
  csrc/driver/engine.cpp
  csrc/driver/engine.h
  csrc/driver/engine_threads.cpp
  csrc/driver/engine_threads.h
  csrc/driver/engine_work.h
  csrc/driver/engines.cpp
  csrc/driver/engines.h
  csrc/driver/error.cpp
  csrc/driver/error.h
  csrc/driver/event.h
  csrc/driver/execute.cpp
  csrc/driver/execute.h
  csrc/driver/faults.cpp
  csrc/driver/faults.h
  csrc/driver/graph.cpp
  csrc/driver/graph.h
  csrc/driver/graph_replay.cpp
  csrc/driver/graph_replay.h
  csrc/driver/handle_table.h
  csrc/driver/held_back.cpp
  csrc/driver/held_back.h
  csrc/driver/ipc_handle.cpp
  csrc/driver/ipc_handle.h
  csrc/driver/ipc_memory.cpp
  csrc/driver/ipc_memory.h
  csrc/driver/lock.cpp
  csrc/driver/lock.h
  csrc/driver/modelled_schedule.cpp
  csrc/driver/modelled_schedule.h
  csrc/driver/modelled_time.cpp
  csrc/driver/modelled_time.h
  csrc/driver/objects.cpp
  csrc/driver/objects.h
  csrc/driver/observers.cpp
  csrc/driver/observers.h
  csrc/driver/pinned_memory.cpp
  csrc/driver/pinned_memory.h
  csrc/driver/platform.h
  csrc/driver/ready_queue.h
  csrc/driver/ring_buffer.h
  csrc/driver/scheduler.cpp
  csrc/driver/scheduler.h
  csrc/driver/seeded_order.h
  csrc/driver/seeded_schedule.cpp
  csrc/driver/seeded_schedule.h
  csrc/driver/semaphores.cpp
  csrc/driver/semaphores.h
  csrc/driver/settings.cpp
  csrc/driver/settings.h
  csrc/driver/steady_time.cpp
  csrc/driver/steady_time.h
  csrc/driver/stream.h
  csrc/driver/task_tracer.cpp
  csrc/driver/task_tracer.h
  csrc/driver/timeline_semaphore.h
)
# Each alone in its translation unit: the headers of a system define macros.
if(WIN32)
  set(OPENREG_DRIVER_PLATFORM csrc/driver/platform_windows.cpp csrc/driver/platform_windows_memory.cpp)
elseif(APPLE)
  set(OPENREG_DRIVER_PLATFORM csrc/driver/platform_posix.cpp csrc/driver/platform_macos.cpp)
else()
  set(OPENREG_DRIVER_PLATFORM csrc/driver/platform_posix.cpp csrc/driver/platform_linux.cpp)
endif()

function(openreg_add_driver)
  find_package(Threads REQUIRED)
  list(TRANSFORM OPENREG_DRIVER_SOURCES PREPEND "${OPENREG_PACKAGE_DIR}/" OUTPUT_VARIABLE sources)
  list(TRANSFORM OPENREG_DRIVER_PLATFORM PREPEND "${OPENREG_PACKAGE_DIR}/" OUTPUT_VARIABLE platform)
  set_source_files_properties(${platform} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_library(openreg SHARED ${sources} ${platform})
  add_library(openreg::openreg ALIAS openreg)
  openreg_library_defaults(openreg RPATH .)
  openreg_unity_build(8 openreg)
  target_compile_definitions(openreg PRIVATE OPENREG_BUILD_DRIVER)
  target_sources(
    openreg
    PUBLIC
      FILE_SET HEADERS
        BASE_DIRS "${OPENREG_PACKAGE_DIR}/include"
        FILES "${OPENREG_PACKAGE_DIR}/${OPENREG_DRIVER_HEADER}"
  )
  target_link_libraries(openreg PRIVATE Threads::Threads)
  openreg_export_c_api_only()
endfunction()

# Windows exports what is marked and nothing else.
function(openreg_export_c_api_only)
  if(WIN32)
    return()
  elseif(APPLE)
    set(list "${CMAKE_CURRENT_BINARY_DIR}/openreg.exports")
    file(CONFIGURE OUTPUT "${list}" CONTENT "_or[A-Z]*\n")
    target_link_options(openreg PRIVATE "LINKER:-exported_symbols_list,${list}")
  else()
    set(list "${CMAKE_CURRENT_BINARY_DIR}/openreg.map")
    file(CONFIGURE OUTPUT "${list}" CONTENT "{ global: or[A-Z]*; local: *; };\n")
    target_link_options(openreg PRIVATE "LINKER:--version-script=${list}")
  endif()
  set_target_properties(openreg PROPERTIES LINK_DEPENDS "${list}")
endfunction()
