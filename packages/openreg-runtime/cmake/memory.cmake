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
  csrc/cache/allocated_blocks.h
  csrc/cache/allocator_reporter.cpp
  csrc/cache/allocator_reporter.h
  csrc/cache/block.h
  csrc/cache/block_list.cpp
  csrc/cache/block_list.h
  csrc/cache/deferred_frees.cpp
  csrc/cache/deferred_frees.h
  csrc/cache/device_caching_allocator.cpp
  csrc/cache/device_caching_allocator.h
  csrc/cache/free_blocks.cpp
  csrc/cache/free_blocks.h
  csrc/cache/import_cache.cpp
  csrc/cache/import_cache.h
  csrc/cache/launch_memory.cpp
  csrc/cache/memory_observers.cpp
  csrc/cache/memory_observers.h
  csrc/cache/memory_provider.h
  csrc/cache/oom_retry.cpp
  csrc/cache/oom_retry.h
  csrc/cache/pools.cpp
  csrc/cache/pools.h
  csrc/cache/segments.cpp
  csrc/cache/segments.h
  csrc/cache/size_policy.h
  csrc/cache/statistics.cpp
  csrc/cache/statistics.h
)
list(TRANSFORM OPENREG_MEMORY_SOURCES PREPEND "${OPENREG_MEMORY_PACKAGE_DIR}/")
set(OPENREG_MEMORY_INCLUDES "${OPENREG_MEMORY_PACKAGE_DIR}/csrc" "${OPENREG_MEMORY_PACKAGE_DIR}/include")
