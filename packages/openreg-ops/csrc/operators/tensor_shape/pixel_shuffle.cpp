// SPDX-License-Identifier: BSD-3-Clause
// pixel_shuffle and pixel_unshuffle, which move channels to pixels and back.
#include <ATen/native/PixelShuffle.h>

#include "registration/declare.h"

namespace openreg::ops {

namespace {

void require_two_dimensional_format(const at::Tensor& self) {
  TORCH_CHECK(self.suggest_memory_format() != c10::MemoryFormat::ChannelsLast3d,
              "Unsupported memory format. Supports only ChannelsLast, Contiguous");
}

OutputSpec meta_pixel_shuffle(const at::Tensor& self, int64_t factor) {
  at::native::check_pixel_shuffle_shapes(self, factor);
  require_two_dimensional_format(self);
  return with_last_sizes(self, {self.size(-3) / factor / factor, self.size(-2) * factor, self.size(-1) * factor});
}

OutputSpec meta_pixel_unshuffle(const at::Tensor& self, int64_t factor) {
  at::native::check_pixel_unshuffle_shapes(self, factor);
  require_two_dimensional_format(self);
  return with_last_sizes(self, {self.size(-3) * factor * factor, self.size(-2) / factor, self.size(-1) / factor});
}

// Makes an empty result itself, because the CPU's kernel would return one of the operand's shape.
at::Tensor unshuffle(const at::Tensor& self, int64_t factor) {
  if (self.numel() == 0) {
    return at::empty(meta_pixel_unshuffle(self, factor).sizes, self.options());
  }
  return cpu::pixel_unshuffle(self, factor);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  unstructured<meta_pixel_shuffle, op::pixel_shuffle>(library, cpu::pixel_shuffle);
  unstructured<meta_pixel_unshuffle, op::pixel_unshuffle>(library, unshuffle);
}

}  // namespace

}  // namespace openreg::ops
