# SPDX-License-Identifier: BSD-3-Clause
#
# What of the runtime needs neither torch nor Python: the caching allocator behind its interface to PyTorch, the memory
# of launches, the mapped segments of other processes. The one list of these sources: the runtime library compiles them,
# and so does the program that runs them under sanitizers (tests/stress).
#
# Sets OPENREG_MEMORY_SOURCES, with whole paths, to be compiled with ${OPENREG_MEMORY_INCLUDES}.

include_guard(DIRECTORY)

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH OPENREG_MEMORY_PACKAGE_DIR)
set(
  OPENREG_MEMORY_SOURCES
  csrc/memory/allocated_blocks.h
  csrc/memory/backend.h
  csrc/memory/block.h
  csrc/memory/block_list.cpp
  csrc/memory/block_list.h
  csrc/memory/deferred_frees.cpp
  csrc/memory/deferred_frees.h
  csrc/memory/device_cache.cpp
  csrc/memory/device_cache.h
  csrc/memory/free_blocks.cpp
  csrc/memory/free_blocks.h
  csrc/memory/import_cache.cpp
  csrc/memory/import_cache.h
  csrc/memory/launch_memory.cpp
  csrc/memory/memory_observers.cpp
  csrc/memory/memory_observers.h
  csrc/memory/oom_retry.cpp
  csrc/memory/oom_retry.h
  csrc/memory/pools.cpp
  csrc/memory/pools.h
  csrc/memory/recorder.cpp
  csrc/memory/recorder.h
  csrc/memory/segments.cpp
  csrc/memory/segments.h
  csrc/memory/size_policy.h
  csrc/memory/statistics.cpp
  csrc/memory/statistics.h
)
list(TRANSFORM OPENREG_MEMORY_SOURCES PREPEND "${OPENREG_MEMORY_PACKAGE_DIR}/")
set(OPENREG_MEMORY_INCLUDES "${OPENREG_MEMORY_PACKAGE_DIR}/csrc" "${OPENREG_MEMORY_PACKAGE_DIR}/include")
