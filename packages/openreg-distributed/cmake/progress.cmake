# SPDX-License-Identifier: BSD-3-Clause
#
# What of the process group needs no torch: who tells whom what, what begins when, ends how and takes how long. The one
# list of these sources: the package's module compiles them, and so does the program that runs them under sanitizers
# (tests/progress).
#
# Sets OPENREG_PROGRESS_SOURCES, with whole paths, to be compiled with ${OPENREG_PROGRESS_INCLUDES} and linked with
# openreg::openreg.

include_guard(DIRECTORY)

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH OPENREG_PROGRESS_PACKAGE_DIR)
set(
  OPENREG_PROGRESS_SOURCES
  csrc/progress/agreement.cpp
  csrc/progress/agreement.h
  csrc/progress/announcement.cpp
  csrc/progress/announcement.h
  csrc/progress/channel.cpp
  csrc/progress/channel.h
  csrc/progress/flight_recorder.cpp
  csrc/progress/flight_recorder.h
  csrc/progress/lane.cpp
  csrc/progress/lane.h
  csrc/progress/operation.cpp
  csrc/progress/operation.h
  csrc/progress/peer_link.h
  csrc/progress/platform.h
  csrc/progress/progress.cpp
  csrc/progress/progress.h
  csrc/progress/threads.cpp
  csrc/progress/threads.h
  csrc/progress/waiters.cpp
  csrc/progress/waiters.h
)
if(WIN32)
  list(APPEND OPENREG_PROGRESS_SOURCES csrc/progress/platform_windows.cpp)
else()
  list(APPEND OPENREG_PROGRESS_SOURCES csrc/progress/platform_posix.cpp)
endif()
list(TRANSFORM OPENREG_PROGRESS_SOURCES PREPEND "${OPENREG_PROGRESS_PACKAGE_DIR}/")
set(OPENREG_PROGRESS_INCLUDES "${OPENREG_PROGRESS_PACKAGE_DIR}/csrc")
