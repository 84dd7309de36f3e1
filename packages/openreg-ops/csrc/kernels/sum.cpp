// SPDX-License-Identifier: BSD-3-Clause
// A reduction. Outputs are computed in tiles. The terms of a tile are summed in parts of a fixed length, and the sums
// of the parts are then added.
#include "kernels/sum.h"

#include <algorithm>

#include "kernels/clones.h"
#include "kernels/parallel.h"

namespace openreg::ops::raw {

namespace {

constexpr int64_t kWideTile = 64;   // outputs of a tile, if they are adjacent in memory; otherwise a tile is one output
constexpr int64_t kLeaf = 256;      // terms that are added one after another
constexpr int64_t kPart = 1 << 15;  // terms of a part; fixed, so that results do not depend on the number of threads
constexpr int64_t kGrainTerms = 1 << 15;

// Returns the sum of a row's elements, which are `stride` apart. Adjacent elements are summed in 16 SIMD lanes.
template <class Value, class Sum>
OPENREG_CLONES Sum sum_of_row(const Value* row, int64_t count, int64_t stride) {
  constexpr int64_t kLanes = 16;
  Sum lanes[kLanes] = {};
  int64_t i = 0;
  if (stride == 1) {
    for (; i + kLanes <= count; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        lanes[lane] += static_cast<Sum>(row[i + lane]);
      }
    }
  }
  for (; i < count; ++i) {
    lanes[0] += static_cast<Sum>(row[i * stride]);
  }
  for (int64_t distance = kLanes / 2; distance > 0; distance /= 2) {
    for (int64_t lane = 0; lane < distance; ++lane) {
      lanes[lane] += lanes[lane + distance];
    }
  }
  return lanes[0];
}

// Adds `count` rows of `width` adjacent terms to the totals of adjacent outputs. Rows are `step` elements apart.
template <class Value, class Sum>
OPENREG_CLONES void add_rows(const Value* row, int64_t count, int64_t step, int64_t width, Sum* totals) {
  if (width == kWideTile) {
    for (int64_t i = 0; i < count; ++i, row += step) {
      for (int64_t lane = 0; lane < kWideTile; ++lane) {
        totals[lane] += static_cast<Sum>(row[lane]);
      }
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i, row += step) {
    for (int64_t lane = 0; lane < width; ++lane) {
      totals[lane] += static_cast<Sum>(row[lane]);
    }
  }
}

// A tile of outputs: the address of the first term of its first output, and the number of outputs.
template <class Value>
struct Tile {
  const Value* first;
  int64_t width;
};

// Adds the terms [begin, end) of each output of a tile to `totals`. Divides the terms in halves down to kLeaf terms
// (pairwise summation).
template <int64_t kWidth, class Value, class Sum>
void add_terms(const Tile<Value>& tile, const LoopAxes<1>& reduced, int64_t begin, int64_t end,
               std::array<Sum, kWidth>& totals) {
  if (end - begin > kLeaf) {
    const int64_t middle = begin + (end - begin) / 2;
    std::array<Sum, kWidth> left{};
    std::array<Sum, kWidth> right{};
    add_terms<kWidth>(tile, reduced, begin, middle, left);
    add_terms<kWidth>(tile, reduced, middle, end, right);
    for (size_t lane = 0; lane < kWidth; ++lane) {
      totals[lane] += left[lane] + right[lane];
    }
    return;
  }
  const int64_t step = row_strides(reduced)[0];
  for_each_row(reduced, begin, end, [&](const std::array<int64_t, 1>& offsets, int64_t length) {
    const Value* row = tile.first + offsets[0];
    if constexpr (kWidth == 1) {
      totals[0] += sum_of_row<Value, Sum>(row, length, step);
    } else {
      add_rows(row, length, step, tile.width, totals.data());
    }
  });
}

// The division of the outputs into tiles along the first kept axis.
struct Tiling {
  int64_t width;       // outputs of a full tile
  int64_t row_length;  // outputs along the axis
  int64_t tiles_per_row;
  int64_t count;

  Tiling(const LoopAxes<2>& kept, int64_t tile_width) : width(tile_width) {
    row_length = kept.empty() ? 1 : kept[0].size;
    tiles_per_row = (row_length + width - 1) / width;
    count = row_length == 0 ? 0 : element_count(kept) / row_length * tiles_per_row;
  }
  int64_t first_output(int64_t tile) const { return tile / tiles_per_row * row_length + tile % tiles_per_row * width; }
  int64_t width_of(int64_t tile) const { return std::min(width, row_length - tile % tiles_per_row * width); }
};

template <int64_t kWidth, class Value, class Result>
void run_tiles(const SumArguments& arguments) {
  using Totals = std::array<Accumulator<Value>, kWidth>;
  const Tiling tiling(arguments.kept, kWidth);
  const int64_t terms = element_count(arguments.reduced);
  const int64_t parts = std::max<int64_t>(1, (terms + kPart - 1) / kPart);

  const auto total = [&](int64_t tile, int64_t begin, int64_t end) {
    const int64_t offset = offsets_at(arguments.kept, tiling.first_output(tile))[0];
    const Tile<Value> outputs{static_cast<const Value*>(arguments.input) + offset, tiling.width_of(tile)};
    Totals totals{};
    add_terms<kWidth>(outputs, arguments.reduced, begin, end, totals);
    return totals;
  };
  const auto store = [&](int64_t tile, const Totals& totals) {
    const int64_t step = row_strides(arguments.kept)[1];
    auto* output = static_cast<Result*>(arguments.output) + offsets_at(arguments.kept, tiling.first_output(tile))[1];
    for (int64_t lane = 0; lane < tiling.width_of(tile); ++lane) {
      output[lane * step] = static_cast<Result>(totals[static_cast<size_t>(lane)]);
    }
  };

  if (parts == 1) {
    for_each_item(tiling.count, grain_of(kGrainTerms, terms * kWidth),
                  [&](int64_t tile) { store(tile, total(tile, 0, terms)); });
    return;
  }
  std::vector<Totals> partial(static_cast<size_t>(tiling.count * parts));
  for_each_item(tiling.count * parts, 1, [&](int64_t item) {
    const int64_t first = item % parts * kPart;
    partial[static_cast<size_t>(item)] = total(item / parts, first, std::min(terms, first + kPart));
  });
  // REAL HW: a second launch does this, or the block that finishes last.
  for (int64_t tile = 0; tile < tiling.count; ++tile) {
    Totals* rows = &partial[static_cast<size_t>(tile * parts)];
    for (int64_t distance = 1; distance < parts; distance *= 2) {
      for (int64_t i = 0; i + distance < parts; i += 2 * distance) {
        for (size_t lane = 0; lane < kWidth; ++lane) {
          rows[i][lane] += rows[i + distance][lane];
        }
      }
    }
    store(tile, rows[0]);
  }
}

template <class Value, class Result>
void run(const SumArguments& arguments) {
  // Adjacent outputs are summed together unless the terms of one output are adjacent, too.
  const bool across = !arguments.kept.empty() && arguments.kept[0].strides[0] == 1 &&
                      (arguments.reduced.empty() || arguments.reduced[0].strides[0] != 1);
  if (across) {
    run_tiles<kWideTile, Value, Result>(arguments);
  } else {
    run_tiles<1, Value, Result>(arguments);
  }
}

using Widening = Types<Half, BFloat16>;
using Whole = Types<bool, uint8_t, int8_t, int16_t, int32_t, int64_t>;

}  // namespace

bool sum_supports(Type input_type, Type output_type) {
  return (input_type == output_type && contains(Floats(), input_type)) ||
         (output_type == Type::Float && contains(Widening(), input_type)) ||
         (output_type == Type::Long && contains(Whole(), input_type));
}

void sum(const SumArguments& arguments) {
  if (arguments.input_type == arguments.output_type && contains(Floats(), arguments.input_type)) {
    visit(Floats(), arguments.input_type, [&](auto value) { run<decltype(value), decltype(value)>(arguments); });
  } else if (arguments.output_type == Type::Float) {
    visit(Widening(), arguments.input_type, [&](auto value) { run<decltype(value), float>(arguments); });
  } else {
    visit(Whole(), arguments.input_type, [&](auto value) { run<decltype(value), int64_t>(arguments); });
  }
}

}  // namespace openreg::ops::raw
