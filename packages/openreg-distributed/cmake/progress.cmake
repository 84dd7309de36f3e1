# SPDX-License-Identifier: BSD-3-Clause
#
# The sources of the process group that need no torch: control messages between ranks, and the start, end and timeout of
# operations. This is their only list: the package's module compiles them, and so does the program that runs them under
# sanitizers (tests/progress).
#
# Sets OPENREG_PROGRESS_SOURCES, with whole paths, to be compiled with ${OPENREG_PROGRESS_INCLUDES} and linked with
# openreg::openreg.

include_guard(DIRECTORY)

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH OPENREG_PROGRESS_PACKAGE_DIR)
set(
  OPENREG_PROGRESS_SOURCES
  csrc/progress/comm_stream.cpp
  csrc/progress/comm_stream.h
  csrc/progress/control_channel.h
  csrc/progress/control_message.cpp
  csrc/progress/control_message.h
  csrc/progress/flight_recorder.cpp
  csrc/progress/flight_recorder.h
  csrc/progress/operation.cpp
  csrc/progress/operation.h
  csrc/progress/operation_matcher.cpp
  csrc/progress/operation_matcher.h
  csrc/progress/platform.h
  csrc/progress/progress_engine.cpp
  csrc/progress/progress_engine.h
  csrc/progress/submission_queue.cpp
  csrc/progress/submission_queue.h
  csrc/progress/threads.cpp
  csrc/progress/threads.h
  csrc/progress/wait_thread_pool.cpp
  csrc/progress/wait_thread_pool.h
)
if(WIN32)
  list(APPEND OPENREG_PROGRESS_SOURCES csrc/progress/platform_windows.cpp)
else()
  list(APPEND OPENREG_PROGRESS_SOURCES csrc/progress/platform_posix.cpp)
endif()
list(TRANSFORM OPENREG_PROGRESS_SOURCES PREPEND "${OPENREG_PROGRESS_PACKAGE_DIR}/")
set(OPENREG_PROGRESS_INCLUDES "${OPENREG_PROGRESS_PACKAGE_DIR}/csrc")
