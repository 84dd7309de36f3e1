// SPDX-License-Identifier: BSD-3-Clause
// A reduction: tiles of outputs, each summed in parts of a fixed length, which are then added up.
#include "raw/sum.h"

#include <algorithm>

#include "raw/grid.h"

namespace openreg::ops::raw {

namespace {

constexpr int64_t kTile = 16;       // outputs that are summed side by side
constexpr int64_t kLeaf = 256;      // terms that are added one after the other
constexpr int64_t kPart = 1 << 15;  // terms of one item of the grid; fixed, so that threads do not change results
constexpr int64_t kGrainTerms = 1 << 15;

template <class Value, class Sum>
Sum sum_of_row(const Value* row, int64_t count, int64_t stride) {
  constexpr int64_t kLanes = 8;
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
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

// A tile of outputs: where its first term is, how many outputs, and how far apart their terms are.
template <class Value>
struct Tile {
  const Value* first;
  int64_t width;
  int64_t stride;
};

// Adds the terms [begin, end) of every output of the tile to `totals`.
template <class Value, class Sum>
void add_terms(const Tile<Value>& tile, const Axes<1>& reduced, int64_t begin, int64_t end, Sum* totals) {
  if (end - begin > kLeaf) {
    const int64_t middle = begin + (end - begin) / 2;
    Sum halves[2][kTile] = {};
    add_terms(tile, reduced, begin, middle, halves[0]);
    add_terms(tile, reduced, middle, end, halves[1]);
    for (int64_t lane = 0; lane < kTile; ++lane) {
      totals[lane] += halves[0][lane] + halves[1][lane];
    }
    return;
  }
  const int64_t step = row_strides(reduced)[0];
  for_each_row(reduced, begin, end, [&](const std::array<int64_t, 1>& offsets, int64_t length) {
    const Value* row = tile.first + offsets[0];
    if (tile.width == 1) {
      totals[0] += sum_of_row<Value, Sum>(row, length, step);
    } else if (tile.width == kTile && tile.stride == 1) {
      for (int64_t i = 0; i < length; ++i, row += step) {
        for (int64_t lane = 0; lane < kTile; ++lane) {
          totals[lane] += static_cast<Sum>(row[lane]);
        }
      }
    } else {
      for (int64_t i = 0; i < length; ++i, row += step) {
        for (int64_t lane = 0; lane < tile.width; ++lane) {
          totals[lane] += static_cast<Sum>(row[lane * tile.stride]);
        }
      }
    }
  });
}

// How the outputs are cut into tiles: along the first kept axis where neighbours there are closer in memory than the
// terms of one sum, else one by one.
struct Tiling {
  int64_t width;       // of a full tile
  int64_t row_length;  // outputs along the first kept axis
  int64_t tiles_per_row;
  int64_t count;

  explicit Tiling(const SumArguments& arguments) {
    const bool across = !arguments.kept.empty() &&
                        (arguments.reduced.empty() || arguments.kept[0].strides[0] < arguments.reduced[0].strides[0]);
    width = across ? kTile : 1;
    row_length = arguments.kept.empty() ? 1 : arguments.kept[0].size;
    tiles_per_row = (row_length + width - 1) / width;
    count = row_length == 0 ? 0 : element_count(arguments.kept) / row_length * tiles_per_row;
  }
  int64_t first_output(int64_t tile) const { return tile / tiles_per_row * row_length + tile % tiles_per_row * width; }
  int64_t width_of(int64_t tile) const { return std::min(width, row_length - tile % tiles_per_row * width); }
};

template <class Value, class Result>
void run(const SumArguments& arguments) {
  using Sum = Accumulator<Value>;
  const Tiling tiling(arguments);
  const int64_t terms = element_count(arguments.reduced);
  const int64_t parts = std::max<int64_t>(1, (terms + kPart - 1) / kPart);
  const std::array<int64_t, 2> steps = row_strides(arguments.kept);

  const auto tile_total = [&](int64_t tile, int64_t begin, int64_t end, Sum* totals) {
    const auto offsets = offsets_at(arguments.kept, tiling.first_output(tile));
    const auto* first = static_cast<const Value*>(arguments.input) + offsets[0];
    add_terms(Tile<Value>{first, tiling.width_of(tile), steps[0]}, arguments.reduced, begin, end, totals);
  };
  const auto store = [&](int64_t tile, const Sum* totals) {
    const auto offsets = offsets_at(arguments.kept, tiling.first_output(tile));
    auto* output = static_cast<Result*>(arguments.output) + offsets[1];
    for (int64_t lane = 0; lane < tiling.width_of(tile); ++lane) {
      output[lane * steps[1]] = static_cast<Result>(totals[lane]);
    }
  };

  if (parts == 1) {
    const int64_t grain = std::max<int64_t>(1, kGrainTerms / std::max<int64_t>(1, terms * tiling.width));
    parallel(tiling.count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t tile = begin; tile < end; ++tile) {
        Sum totals[kTile] = {};
        tile_total(tile, 0, terms, totals);
        store(tile, totals);
      }
    });
    return;
  }
  std::vector<std::array<Sum, kTile>> partial(static_cast<size_t>(tiling.count * parts));
  parallel(tiling.count * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t first = item % parts * kPart;
      std::array<Sum, kTile> totals{};
      tile_total(item / parts, first, std::min(terms, first + kPart), totals.data());
      partial[static_cast<size_t>(item)] = totals;
    }
  });
  // REAL HW: a second launch, or the block that finishes last.
  for (int64_t tile = 0; tile < tiling.count; ++tile) {
    auto* rows = &partial[static_cast<size_t>(tile * parts)];
    for (int64_t distance = 1; distance < parts; distance *= 2) {
      for (int64_t i = 0; i + distance < parts; i += 2 * distance) {
        for (int64_t lane = 0; lane < kTile; ++lane) {
          rows[i][lane] += rows[i + distance][lane];
        }
      }
    }
    store(tile, rows->data());
  }
}

using Widening = Types<Half, BFloat16>;
using Whole = Types<bool, uint8_t, int8_t, int16_t, int32_t, int64_t>;

}  // namespace

bool sum_serves(Type input_type, Type output_type) {
  return (input_type == output_type && contains(Floats(), input_type)) ||
         (output_type == Type::kFloat32 && contains(Widening(), input_type)) ||
         (output_type == Type::kInt64 && contains(Whole(), input_type));
}

void sum(const SumArguments& arguments) {
  if (arguments.input_type == arguments.output_type && contains(Floats(), arguments.input_type)) {
    visit(Floats(), arguments.input_type, [&](auto value) { run<decltype(value), decltype(value)>(arguments); });
  } else if (arguments.output_type == Type::kFloat32) {
    visit(Widening(), arguments.input_type, [&](auto value) { run<decltype(value), float>(arguments); });
  } else {
    visit(Whole(), arguments.input_type, [&](auto value) { run<decltype(value), int64_t>(arguments); });
  }
}

}  // namespace openreg::ops::raw
