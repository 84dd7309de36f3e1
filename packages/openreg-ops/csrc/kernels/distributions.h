// SPDX-License-Identifier: BSD-3-Clause
// The kernels that draw random numbers: what runs on the engine, on CPU tensors. They use all threads; which numbers an
// element gets depends on its index, the seed and the offset of `start` alone. Their launch reserved what they draw.
#pragma once

#include <ATen/core/Tensor.h>

#include "openreg/runtime/generator.h"

namespace openreg::ops::kernels {

// Filling a tensor of any strides, one step of the generator per element at most ------------------------------------

// Of a floating dtype.
void normal(at::Tensor& out, runtime::PhiloxState start, double mean, double deviation);
void log_normal(at::Tensor& out, runtime::PhiloxState start, double mean, double deviation);  // those of the logarithm
void exponential(at::Tensor& out, runtime::PhiloxState start, double lambda);
void cauchy(at::Tensor& out, runtime::PhiloxState start, double median, double sigma);

// Of any real dtype: the number of trials up to the first success, 1 or more.
void geometric(at::Tensor& out, runtime::PhiloxState start, double p);

// Of any real dtype or bool: 1 where a uniform number is below p, else 0.
void bernoulli(at::Tensor& out, runtime::PhiloxState start, double p);

// The same with a probability per element, which broadcasts to the output. Not a number and p outside of [0, 1] become
// the device's error, as on CUDA: they depend on data.
void bernoulli_of_tensor(at::Tensor& out, const at::Tensor& p, runtime::PhiloxState start);

// Of any real dtype, unsigned ones and bool too: whole numbers in [from, from + range), modulo 2^64. A range of 0
// stands for 2^64.
void integers(at::Tensor& out, runtime::PhiloxState start, uint64_t range, int64_t from);

// The same from 0 up to the largest whole number that the dtype holds with all those below.
void any_integers(at::Tensor& out, runtime::PhiloxState start);

// The numbers from 0 up to the output's count in a random order; of any real dtype that holds them.
void permutation(at::Tensor& out, runtime::PhiloxState start);

// The output is int64, (draws) or (rows, draws); the weights (categories) or (rows, categories), of any real dtype. A
// row of weights that is no distribution becomes the device's error.
void multinomial(at::Tensor& out, const at::Tensor& weights, int64_t draws, runtime::PhiloxState start);

// Samplers that reject: they need an unknown count of numbers per element, so that each has a sequence of its own. The
// outputs are contiguous and of a floating dtype; a launch reserves kSamplerSteps, whatever their size. -------------

constexpr int64_t kSamplerSteps = 1024;

// Parameters of a floating dtype and the output's shape, or of one that broadcasts to it in `binomial`.
void poisson(const at::Tensor& rate, at::Tensor& out, runtime::PhiloxState start);
void binomial(const at::Tensor& count, const at::Tensor& probability, at::Tensor& out, runtime::PhiloxState start);
void gamma(const at::Tensor& shape, at::Tensor& out, runtime::PhiloxState start);  // of scale 1
void dirichlet(const at::Tensor& concentration, at::Tensor& out,
               runtime::PhiloxState start);  // over the last dimension

}  // namespace openreg::ops::kernels
