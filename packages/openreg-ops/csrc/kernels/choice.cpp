// SPDX-License-Identifier: BSD-3-Clause
// Random permutations, and draws of categories with given probabilities.
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <numeric>
#include <vector>

#include "kernels/distributions.h"
#include "kernels/random.h"

namespace openreg::ops::kernels {

namespace {

// Sorts indices by their keys, on all threads: first blocks, and then it merges pairs of blocks. Equal keys are in the
// order of their indices, so that the result does not depend on the blocks.
void sort_by_key(std::vector<int64_t>& order, const int64_t* key) {
  constexpr int64_t kBlock = 16384;
  const auto count = static_cast<int64_t>(order.size());
  const auto place = [&](int64_t index) { return order.begin() + std::min(index, count); };
  const auto before = [key](int64_t a, int64_t b) { return key[a] != key[b] ? key[a] < key[b] : a < b; };
  for_each_item((count + kBlock - 1) / kBlock, 1,
                [&](int64_t block) { std::sort(place(block * kBlock), place((block + 1) * kBlock), before); });
  for (int64_t length = kBlock; length < count; length *= 2) {
    for_each_item((count + 2 * length - 1) / (2 * length), 1, [&](int64_t pair) {
      const int64_t first = 2 * length * pair;
      std::inplace_merge(place(first), place(first + length), place(first + 2 * length), before);
    });
  }
}

}  // namespace

// Sorts the indices by random keys of 64 bits, so that all orders are equally likely.
void permutation(at::Tensor& out, runtime::PhiloxState start) {
  at::Tensor keys = at::empty({out.numel()}, at::kLong);
  fill_each<int64_t, uint64_t>(keys, start, [](uint64_t word) { return word; });
  std::vector<int64_t> order(static_cast<size_t>(out.numel()));
  std::iota(order.begin(), order.end(), 0);
  sort_by_key(order, keys.const_data_ptr<int64_t>());
  out.copy_(at::from_blob(order.data(), {out.numel()}, at::kLong));
}

// Draws a uniform number for each draw, and finds its category by a search in the running sums of the weights.
void multinomial(at::Tensor& out, const at::Tensor& weights, int64_t draws, runtime::PhiloxState start) {
  const at::Tensor numbers_of_weights = weights.to(at::kDouble).contiguous();
  const at::Tensor sums = at::cumsum(numbers_of_weights, -1).contiguous();
  const int64_t categories = weights.size(-1);
  const int64_t rows = weights.dim() == 1 ? 1 : weights.size(0);
  const double* weight = numbers_of_weights.const_data_ptr<double>();
  const double* sum = sums.const_data_ptr<double>();
  for (int64_t row = 0; row < rows; ++row) {
    const double total = sum[row * categories + categories - 1];
    TORCH_CHECK(total > 0 && std::isfinite(total), "invalid multinomial distribution (sum of probabilities ", total,
                " must be positive and finite)");
    for (int64_t i = 0; i < categories; ++i) {
      TORCH_CHECK(weight[row * categories + i] >= 0,
                  "invalid multinomial distribution (encountering probability entry < 0)");
    }
  }
  const at::Tensor numbers = uniform_doubles({rows, draws}, start);
  at::Tensor chosen = at::empty({rows, draws}, at::kLong);
  const double* number = numbers.const_data_ptr<double>();
  int64_t* choice = chosen.mutable_data_ptr<int64_t>();
  constexpr int64_t kDrawsPerThread = 4096;
  for_each_item(rows * draws, kDrawsPerThread, [&](int64_t i) {
    const double* first = sum + i / draws * categories;
    const double* last = first + categories;
    const double* found = std::upper_bound(first, last, number[i] * last[-1]);
    choice[i] = found == last ? std::lower_bound(first, last, last[-1]) - first : found - first;
  });
  out.copy_(chosen.view_as(out));
}

}  // namespace openreg::ops::kernels
