// SPDX-License-Identifier: BSD-3-Clause
// A copy of rows, and its gradient. The gradient first sorts the indices, so that one thread adds all rows with one
// index. It thus needs no atomic operations and is deterministic.
#include "kernels/embedding.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/clones.h"
#include "kernels/parallel.h"

namespace openreg::ops::raw {

namespace {

constexpr int64_t kGrainElements = 16384;

// Returns index `i` of an array of int64 or int32.
int64_t index_at(const void* indices, Type type, int64_t i) {
  return type == Type::Long ? static_cast<const int64_t*>(indices)[i] : static_cast<const int32_t*>(indices)[i];
}

// Same as `index_at()`, except that it throws std::out_of_range for an index that is not a row.
//
// REAL HW: a kernel cannot throw. It sets an error flag, which the next synchronization reads.
int64_t checked_index(const void* indices, Type type, int64_t i, int64_t rows) {
  const int64_t index = index_at(indices, type, i);
  if (index < 0 || index >= rows) {
    throw std::out_of_range("index out of range in self: index " + std::to_string(index) + " of an embedding with " +
                            std::to_string(rows) + " rows");
  }
  return index;
}

template <class Value, class Sum>
OPENREG_CLONES void add_row(const Value* row, int64_t width, Sum* sums) {
  for (int64_t column = 0; column < width; ++column) {
    sums[column] += static_cast<Sum>(row[column]);
  }
}

template <class Value>
void backward(const EmbeddingBackwardArguments& arguments) {
  using Sum = Accumulator<Value>;
  const int64_t width = arguments.width;
  // A counting sort of the positions of indices by row. The positions of row r begin at places[starts[r]].
  std::vector<int64_t> starts(static_cast<size_t>(arguments.rows) + 1);
  for (int64_t i = 0; i < arguments.count; ++i) {
    ++starts[static_cast<size_t>(checked_index(arguments.indices, arguments.index_type, i, arguments.rows)) + 1];
  }
  for (size_t row = 1; row < starts.size(); ++row) {
    starts[row] += starts[row - 1];
  }
  std::vector<int64_t> next(starts.begin(), starts.end() - 1);
  std::vector<int64_t> places(static_cast<size_t>(arguments.count));
  for (int64_t i = 0; i < arguments.count; ++i) {
    const int64_t row = index_at(arguments.indices, arguments.index_type, i);
    places[static_cast<size_t>(next[static_cast<size_t>(row)]++)] = i;
  }
  const auto* gradient = static_cast<const Value*>(arguments.gradient);
  auto* result = static_cast<Value*>(arguments.table_gradient);
  at::parallel_for(0, arguments.rows, grain_of(kGrainElements, width), [&](int64_t begin, int64_t end) {
    std::vector<Sum> sums(static_cast<size_t>(width));
    for (int64_t row = begin; row < end; ++row) {
      const int64_t first = starts[static_cast<size_t>(row)];
      const int64_t last = row == arguments.padding ? first : starts[static_cast<size_t>(row) + 1];
      std::fill(sums.begin(), sums.end(), Sum(0));
      for (int64_t i = first; i < last; ++i) {
        add_row(gradient + places[static_cast<size_t>(i)] * width, width, sums.data());
      }
      const Sum divisor = arguments.by_frequency && last > first ? static_cast<Sum>(last - first) : Sum(1);
      for (int64_t column = 0; column < width; ++column) {
        result[row * width + column] = static_cast<Value>(sums[static_cast<size_t>(column)] / divisor);
      }
    }
  });
}

}  // namespace

void embedding(const EmbeddingArguments& arguments) {
  const auto size = static_cast<size_t>(arguments.element_size);
  const int64_t row_step = arguments.table_strides[0] * arguments.element_size;
  const int64_t column_step = arguments.table_strides[1] * arguments.element_size;
  for_each_item(arguments.count, grain_of(kGrainElements, arguments.width), [&](int64_t i) {
    const int64_t index = checked_index(arguments.indices, arguments.index_type, i, arguments.rows);
    const char* source = static_cast<const char*>(arguments.table) + index * row_step;
    char* target = static_cast<char*>(arguments.output) + i * arguments.width * arguments.element_size;
    if (column_step == arguments.element_size) {
      std::memcpy(target, source, size * static_cast<size_t>(arguments.width));
      return;
    }
    for (int64_t column = 0; column < arguments.width; ++column) {
      std::memcpy(target + column * arguments.element_size, source + column * column_step, size);
    }
  });
}

void embedding_backward(const EmbeddingBackwardArguments& arguments) {
  visit(Floats(), arguments.type, [&](auto example) { backward<decltype(example)>(arguments); });
}

}  // namespace openreg::ops::raw
