// SPDX-License-Identifier: BSD-3-Clause
// Random choices: permutations, and draws from given probabilities.
#include "common/random.h"

#include <ATen/Dispatch_v2.h>
#include <ATen/native/Resize.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/multinomial_native.h>
#include <torch/library.h>

#include <numeric>

#include "common/launch_on.h"

namespace openreg::ops {

namespace {

using MaybeGenerator = std::optional<at::Generator>;

// Sorts by key, blocks first and then pairs of them; equal keys stand in the order of their indices, so that the result
// does not depend on the blocks.
void sort_by_key(std::vector<int64_t>& order, const int64_t* key) {
  constexpr int64_t kBlock = 16384;
  const auto count = static_cast<int64_t>(order.size());
  const auto place = [&](int64_t index) { return order.begin() + std::min(index, count); };
  const auto before = [key](int64_t a, int64_t b) { return key[a] != key[b] ? key[a] < key[b] : a < b; };
  raw::parallel((count + kBlock - 1) / kBlock, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      std::sort(place(block * kBlock), place((block + 1) * kBlock), before);
    }
  });
  for (int64_t length = kBlock; length < count; length *= 2) {
    raw::parallel((count + 2 * length - 1) / (2 * length), 1, [&](int64_t begin, int64_t end) {
      for (int64_t pair = begin; pair < end; ++pair) {
        const int64_t first = 2 * length * pair;
        std::inplace_merge(place(first), place(first + length), place(first + 2 * length), before);
      }
    });
  }
}

// Sorts the indices by random keys, so that every order is equally likely.
void permutation_kernel(at::Tensor& out, runtime::PhiloxState start) {
  at::Tensor keys = at::empty({out.numel()}, at::kLong);
  fill_random<int64_t, 2>(keys, start, [](const RandomBits& bits, auto& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<int64_t>((static_cast<uint64_t>(bits[2 * i]) << 32) | bits[2 * i + 1]);
    }
  });
  std::vector<int64_t> order(static_cast<size_t>(out.numel()));
  std::iota(order.begin(), order.end(), 0);
  sort_by_key(order, keys.const_data_ptr<int64_t>());
  out.copy_(at::from_blob(order.data(), {out.numel()}, at::kLong));
}

at::Tensor& randperm_out(int64_t n, MaybeGenerator generator, at::Tensor& out) {
  constexpr const char* kName = "aten::randperm";
  TORCH_CHECK(n >= 0, "n must be non-negative, got ", n);
  const c10::Device device = device_of(kName, out);
  const CurrentDevice current(device);
  AT_DISPATCH_V2(out.scalar_type(), kName, AT_WRAP([&] {
                   TORCH_CHECK(n <= 1 || static_cast<int64_t>(static_cast<scalar_t>(n - 1)) == n - 1,
                               "randperm: n is too large for the result's dtype ", out.scalar_type(), ": ", n);
                 }),
                 AT_EXPAND(AT_ALL_TYPES), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), at::kHalf, at::kBFloat16);
  at::native::resize_output(out, {n});
  if (n != 0) {
    launch_kernel<decltype(&permutation_kernel), at::Tensor&, runtime::PhiloxState>(
        kName, device, &permutation_kernel, out, reserve_random(generator, device.index(), n));
  }
  return out;
}

// Finds a uniform number of its own for every draw in the running sums of the weights.
void draws_kernel(at::Tensor& out, const at::Tensor& weights, int64_t draws, runtime::PhiloxState start) {
  const at::Tensor sums = at::cumsum(weights.to(at::kDouble), -1).contiguous();
  const int64_t categories = weights.size(-1);
  const int64_t rows = weights.dim() == 1 ? 1 : weights.size(0);
  const double* sum = sums.const_data_ptr<double>();
  for (int64_t row = 0; row < rows; ++row) {
    const double total = sum[row * categories + categories - 1];
    TORCH_CHECK(total > 0 && std::isfinite(total), "invalid multinomial distribution (sum of probabilities ", total,
                " must be positive and finite)");
    for (int64_t i = 1; i < categories; ++i) {
      TORCH_CHECK(sum[row * categories + i] >= sum[row * categories + i - 1],
                  "invalid multinomial distribution (encountering probability entry < 0)");
    }
    TORCH_CHECK(sum[row * categories] >= 0, "invalid multinomial distribution (encountering probability entry < 0)");
  }
  at::Tensor numbers = at::empty({rows, draws}, at::kDouble);
  fill_random<double, 2>(numbers, start, [](const RandomBits& bits, auto& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = uniform_number<double>(bits, static_cast<int>(i));
    }
  });
  at::Tensor chosen = at::empty({rows, draws}, at::kLong);
  const double* number = numbers.const_data_ptr<double>();
  int64_t* choice = chosen.mutable_data_ptr<int64_t>();
  constexpr int64_t kDrawsPerThread = 4096;
  raw::parallel(rows * draws, kDrawsPerThread, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double* first = sum + i / draws * categories;
      const double* last = first + categories;
      const double* found = std::upper_bound(first, last, number[i] * last[-1]);
      choice[i] = found == last ? std::lower_bound(first, last, last[-1]) - first : found - first;
    }
  });
  out.copy_(chosen.view_as(out));
}

// The kernel that PyTorch's own multinomial() asks for when it draws with replacement; without, it takes the largest of
// weights over exponential numbers, with other operators.
void draw_with_replacement(at::Tensor& out, const at::Tensor& weights, int64_t draws, MaybeGenerator generator) {
  constexpr const char* kName = "aten::multinomial";
  const c10::Device device = device_of(kName, weights);
  const CurrentDevice current(device);
  launch_kernel<decltype(&draws_kernel), at::Tensor&, const at::Tensor&, int64_t, runtime::PhiloxState>(
      kName, device, &draws_kernel, out, weights, draws, reserve_random(generator, device.index(), out.numel()));
}

at::Tensor multinomial(const at::Tensor& self, int64_t draws, bool replacement, MaybeGenerator generator) {
  const CurrentDevice current(device_of("aten::multinomial", self));
  return at::native::multinomial(self, draws, replacement, std::move(generator));
}

at::Tensor& multinomial_out(const at::Tensor& self, int64_t draws, bool replacement, MaybeGenerator generator,
                            at::Tensor& out) {
  constexpr const char* kName = "aten::multinomial";
  const c10::Device device = device_of(kName, self, out);
  check_same_device(kName, device, self, out);
  at::assert_no_internal_overlap(out);
  const CurrentDevice current(device);
  return at::native::multinomial_out(self, draws, replacement, std::move(generator), out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("randperm.generator_out", TORCH_FN(randperm_out));
  library.impl("multinomial", TORCH_FN(multinomial));
  library.impl("multinomial.out", TORCH_FN(multinomial_out));
}

}  // namespace

}  // namespace openreg::ops

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(multinomial_with_replacement_stub, &openreg::ops::draw_with_replacement)
}  // namespace at::native
