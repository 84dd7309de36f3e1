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
set(OPENREG_DRIVER_DIR "${OPENREG_PACKAGE_DIR}/csrc/driver")
set(OPENREG_DRIVER_HEADER include/openreg.h)
# The folders come from the lowest to the highest, as csrc/driver/README.md has them.
set(
  OPENREG_DRIVER_SOURCES
  platform/platform.h
  base/busy_meter.h
  base/error.cpp
  base/error.h
  base/faults.cpp
  base/faults.h
  base/handle_table.h
  base/lock.cpp
  base/lock.h
  base/ring_buffer.h
  base/settings.cpp
  base/settings.h
  base/steady_time.cpp
  base/steady_time.h
  memory/address_space.cpp
  memory/address_space.h
  memory/device_memory.cpp
  memory/device_memory.h
  memory/ipc_handle.cpp
  memory/ipc_handle.h
  memory/ipc_memory.cpp
  memory/ipc_memory.h
  memory/pinned_memory.cpp
  memory/pinned_memory.h
  objects/captures.cpp
  objects/captures.h
  objects/device.cpp
  objects/device.h
  objects/event.h
  objects/graph.cpp
  objects/graph.h
  objects/objects.cpp
  objects/objects.h
  objects/stream.h
  objects/timeline_semaphore.h
  time/clock.h
  time/deadlines.cpp
  time/deadlines.h
  time/modelled_time.cpp
  time/modelled_time.h
  time/seeded_order.h
  observe/observers.cpp
  observe/observers.h
  observe/task_tracer.cpp
  observe/task_tracer.h
  engine/engine.cpp
  engine/engine.h
  engine/engine_threads.cpp
  engine/engine_threads.h
  engine/engine_work.h
  engine/engines.cpp
  engine/engines.h
  engine/execute.cpp
  engine/execute.h
  engine/ready_queue.h
  schedule/command_processor.cpp
  schedule/command_processor.h
  schedule/completions.h
  schedule/demand.h
  schedule/dispatcher.cpp
  schedule/dispatcher.h
  schedule/graph_replay.cpp
  schedule/graph_replay.h
  schedule/held_back.cpp
  schedule/held_back.h
  schedule/modelled_schedule.cpp
  schedule/modelled_schedule.h
  schedule/scheduler.cpp
  schedule/scheduler.h
  schedule/seeded_schedule.cpp
  schedule/seeded_schedule.h
  schedule/semaphores.cpp
  schedule/semaphores.h
  api/api_device.cpp
  api/api_event.cpp
  api/api_graph.cpp
  api/api_ipc.cpp
  api/api_launch.cpp
  api/api_memory.cpp
  api/api_observer.cpp
  api/api_semaphore.cpp
  api/api_stream.cpp
  api/driver.cpp
  api/driver.h
)
# Each alone in its translation unit: the headers of a system define macros.
if(WIN32)
  set(OPENREG_DRIVER_PLATFORM platform/platform_windows.cpp platform/platform_windows_memory.cpp)
elseif(APPLE)
  set(OPENREG_DRIVER_PLATFORM platform/platform_posix.cpp platform/platform_macos.cpp)
else()
  set(OPENREG_DRIVER_PLATFORM platform/platform_posix.cpp platform/platform_linux.cpp)
endif()

function(openreg_add_driver)
  find_package(Threads REQUIRED)
  list(TRANSFORM OPENREG_DRIVER_SOURCES PREPEND "${OPENREG_DRIVER_DIR}/" OUTPUT_VARIABLE sources)
  list(TRANSFORM OPENREG_DRIVER_PLATFORM PREPEND "${OPENREG_DRIVER_DIR}/" OUTPUT_VARIABLE platform)
  set_source_files_properties(${platform} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_library(openreg SHARED ${sources} ${platform})
  add_library(openreg::openreg ALIAS openreg)
  openreg_library_defaults(openreg RPATH .)
  openreg_unity_build(8 openreg)
  target_compile_definitions(openreg PRIVATE OPENREG_BUILD_DRIVER)
  target_include_directories(openreg PRIVATE "${OPENREG_DRIVER_DIR}")
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
