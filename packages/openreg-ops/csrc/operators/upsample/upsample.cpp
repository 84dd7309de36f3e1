// SPDX-License-Identifier: BSD-3-Clause
// Resampling of images with backward. The CPU has no kernels for half precision with antialiasing, so these compute in
// float.
#include "registration/declare.h"

namespace openreg::ops {

namespace {

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  constexpr KernelTraits kFloatsAndBytes{.refused = kBoolean | kSignedIntegers | kComplex};
  structured<meta::structured_upsample_nearest1d, op::upsample_nearest1d>(library, cpu::upsample_nearest1d_outf,
                                                                          kFloatsAndBytes);
  structured<meta::structured_upsample_nearest1d_backward, op::upsample_nearest1d_backward>(
      library, cpu::upsample_nearest1d_backward_outf, kFloats);
  structured<meta::structured_upsample_nearest2d, op::upsample_nearest2d>(library, cpu::upsample_nearest2d_outf,
                                                                          checked(kFloatsAndBytes));
  structured<meta::structured_upsample_nearest2d_backward, op::upsample_nearest2d_backward>(
      library, cpu::upsample_nearest2d_backward_outf, checked(kFloats));
  structured<meta::structured_upsample_nearest3d, op::upsample_nearest3d>(library, cpu::upsample_nearest3d_outf,
                                                                          kFloatsAndBytes);
  structured<meta::structured_upsample_nearest3d_backward, op::upsample_nearest3d_backward>(
      library, cpu::upsample_nearest3d_backward_outf, kFloats);
  structured<meta::structured__upsample_nearest_exact1d, op::_upsample_nearest_exact1d>(
      library, cpu::_upsample_nearest_exact1d_outf, kFloatsAndBytes);
  structured<meta::structured__upsample_nearest_exact1d_backward, op::_upsample_nearest_exact1d_backward>(
      library, cpu::_upsample_nearest_exact1d_backward_outf, kFloats);
  structured<meta::structured__upsample_nearest_exact2d, op::_upsample_nearest_exact2d>(
      library, cpu::_upsample_nearest_exact2d_outf, kFloatsAndBytes);
  structured<meta::structured__upsample_nearest_exact2d_backward, op::_upsample_nearest_exact2d_backward>(
      library, cpu::_upsample_nearest_exact2d_backward_outf, kFloats);
  structured<meta::structured__upsample_nearest_exact3d, op::_upsample_nearest_exact3d>(
      library, cpu::_upsample_nearest_exact3d_outf, kFloatsAndBytes);
  structured<meta::structured__upsample_nearest_exact3d_backward, op::_upsample_nearest_exact3d_backward>(
      library, cpu::_upsample_nearest_exact3d_backward_outf, kFloats);
  structured<meta::structured_upsample_linear1d, op::upsample_linear1d>(library, cpu::upsample_linear1d_outf, kFloats);
  structured<meta::structured_upsample_linear1d_backward, op::upsample_linear1d_backward>(
      library, cpu::upsample_linear1d_backward_outf, kFloats);
  structured<meta::structured_upsample_bilinear2d, op::upsample_bilinear2d>(library, cpu::upsample_bilinear2d_outf,
                                                                            checked(kFloatsAndBytes));
  structured<meta::structured_upsample_bilinear2d_backward, op::upsample_bilinear2d_backward>(
      library, cpu::upsample_bilinear2d_backward_outf, checked(kFloats));
  structured<meta::structured_upsample_trilinear3d, op::upsample_trilinear3d>(library, cpu::upsample_trilinear3d_outf,
                                                                              kFloats);
  structured<meta::structured_upsample_trilinear3d_backward, op::upsample_trilinear3d_backward>(
      library, cpu::upsample_trilinear3d_backward_outf, kFloats);
  structured<meta::structured_upsample_bicubic2d, op::upsample_bicubic2d>(library, cpu::upsample_bicubic2d_outf,
                                                                          kFloatsAndBytes);
  structured<meta::structured_upsample_bicubic2d_backward, op::upsample_bicubic2d_backward>(
      library, cpu::upsample_bicubic2d_backward_outf, kFloats);
  structured<meta::structured__upsample_bilinear2d_aa, op::_upsample_bilinear2d_aa>(
      library, computed_in<reduced_as_float, cpu::_upsample_bilinear2d_aa_outf>, kFloatsAndBytes);
  structured<meta::structured__upsample_bilinear2d_aa_backward, op::_upsample_bilinear2d_aa_backward>(
      library, computed_in<reduced_as_float, cpu::_upsample_bilinear2d_aa_backward_outf>, kFloats);
  structured<meta::structured__upsample_bicubic2d_aa, op::_upsample_bicubic2d_aa>(
      library, computed_in<reduced_as_float, cpu::_upsample_bicubic2d_aa_outf>, kFloatsAndBytes);
  structured<meta::structured__upsample_bicubic2d_aa_backward, op::_upsample_bicubic2d_aa_backward>(
      library, computed_in<reduced_as_float, cpu::_upsample_bicubic2d_aa_backward_outf>, kFloats);
  structured<meta::structured__upsample_lanczos2d_aa, op::_upsample_lanczos2d_aa>(
      library, computed_in<reduced_as_float, cpu::_upsample_lanczos2d_aa_outf>, kFloatsAndBytes);
  structured<meta::structured__upsample_lanczos2d_aa_backward, op::_upsample_lanczos2d_aa_backward>(
      library, computed_in<reduced_as_float, cpu::_upsample_lanczos2d_aa_backward_outf>, kFloats);
}

}  // namespace

}  // namespace openreg::ops
