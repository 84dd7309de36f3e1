// SPDX-License-Identifier: BSD-3-Clause
// A matrix product in tiles. For each tile, the elements of both operands are packed into buffers that fit into the
// cache (REAL HW: into the shared memory of a block). A micro-kernel multiplies them, with its sums in registers.
#include "kernels/matmul.h"

#include <algorithm>
#include <array>

#include "kernels/clones.h"
#include "kernels/parallel.h"

namespace openreg::ops::raw {

namespace {

constexpr int64_t kTile = 64;      // rows and columns of a tile of the output
constexpr int64_t kDepth = 128;    // terms of each sum that are packed at a time
constexpr int64_t kMicroRows = 4;  // rows of the micro-kernel's block of sums
constexpr int64_t kMicroColumns = 16;
constexpr int64_t kGrainProducts = 1 << 15;

// The buffers of one thread. Operands are in strips of the micro-kernel's width, in the order in which it reads them.
template <class Sum>
struct Buffers {
  Sum left[kTile / kMicroRows][kDepth][kMicroRows];
  Sum right[kTile / kMicroColumns][kDepth][kMicroColumns];
  Sum sums[kTile][kTile];
};

// Packs `width` lines of `depth` terms into strips, and zeros for the other lines of a tile. Lines are rows of the left
// operand and columns of the right one.
template <class Value, class Sum, size_t kWidth>
void pack(Sum (*strips)[kDepth][kWidth], const Value* first, int64_t width, int64_t depth, int64_t line_stride,
          int64_t depth_stride) {
  for (int64_t line = 0; line < kTile; ++line) {
    auto& strip = strips[line / static_cast<int64_t>(kWidth)];
    const size_t lane = static_cast<size_t>(line) % kWidth;
    const Value* source = first + line * line_stride;
    for (int64_t i = 0; i < depth; ++i) {
      strip[i][lane] = line < width ? static_cast<Sum>(source[i * depth_stride]) : Sum(0);
    }
  }
}

// The micro-kernel: adds the products of two strips to a block of sums.
template <class Sum>
OPENREG_CLONES void multiply_strips(const Sum (*left)[kMicroRows], const Sum (*right)[kMicroColumns], int64_t depth,
                                    Sum* sums) {
  Sum registers[kMicroRows][kMicroColumns] = {};
  for (int64_t i = 0; i < depth; ++i) {
    for (int64_t row = 0; row < kMicroRows; ++row) {
      for (int64_t column = 0; column < kMicroColumns; ++column) {
        registers[row][column] += left[i][row] * right[i][column];
      }
    }
  }
  for (int64_t row = 0; row < kMicroRows; ++row) {
    for (int64_t column = 0; column < kMicroColumns; ++column) {
      sums[row * kTile + column] += registers[row][column];
    }
  }
}

template <class Value>
void compute_tile(const MatmulArguments& arguments, int64_t first_row, int64_t first_column) {
  using Sum = Accumulator<Value>;
  const auto& [left_row, left_column] = arguments.left.strides;
  const auto& [right_row, right_column] = arguments.right.strides;
  const auto& [output_row, output_column] = arguments.output.strides;
  const int64_t rows = std::min(kTile, arguments.rows - first_row);
  const int64_t columns = std::min(kTile, arguments.columns - first_column);
  Buffers<Sum> buffers;
  std::fill_n(&buffers.sums[0][0], kTile * kTile, Sum(0));
  for (int64_t begin = 0; begin < arguments.depth; begin += kDepth) {
    const int64_t depth = std::min(kDepth, arguments.depth - begin);
    pack(buffers.left, static_cast<const Value*>(arguments.left.address) + first_row * left_row + begin * left_column,
         rows, depth, left_row, left_column);
    pack(buffers.right,
         static_cast<const Value*>(arguments.right.address) + begin * right_row + first_column * right_column, columns,
         depth, right_column, right_row);
    for (int64_t row = 0; row < rows; row += kMicroRows) {
      for (int64_t column = 0; column < columns; column += kMicroColumns) {
        multiply_strips(buffers.left[row / kMicroRows], buffers.right[column / kMicroColumns], depth,
                        &buffers.sums[row][column]);
      }
    }
  }
  auto* output = static_cast<Value*>(arguments.output.address) + first_row * output_row + first_column * output_column;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      output[row * output_row + column * output_column] = static_cast<Value>(buffers.sums[row][column]);
    }
  }
}

}  // namespace

void matmul(const MatmulArguments& arguments) {
  const int64_t tiles_down = (arguments.rows + kTile - 1) / kTile;
  const int64_t tiles_across = (arguments.columns + kTile - 1) / kTile;
  const int64_t grain = grain_of(kGrainProducts, arguments.depth * kTile * kTile);
  visit(FloatsAndIntegers(), arguments.type, [&](auto example) {
    for_each_item(tiles_down * tiles_across, grain, [&](int64_t tile) {
      compute_tile<decltype(example)>(arguments, tile / tiles_across * kTile, tile % tiles_across * kTile);
    });
  });
}

}  // namespace openreg::ops::raw
