// SPDX-License-Identifier: BSD-3-Clause
// The kernels of random distributions, except that of aten::uniform_ (kernels/uniform.h). They take aliases, which are
// CPU tensors over the bytes of device tensors. The compute engine of the device runs them, on all OpenMP threads. If a
// dtype is not in kCommonDtypes (those that most kernels support), a dry run (launch/dry_run.h) may call a kernel
// first, on the calling thread alone, to find out whether it rejects the dtype. `start` is the place in the Philox
// sequence at which a kernel begins to draw; the launch has reserved the numbers. The random numbers that a kernel
// draws for an element depend only on its index and on the seed and the offset of `start`, not on the threads.
#pragma once

#include <ATen/core/Tensor.h>

#include "openreg/runtime/generator.h"

namespace openreg::ops::kernels {

// Kernels that fill a tensor of any strides, with one step of the generator for four elements -------------------------

// Fill a tensor of a floating-point dtype. For log_normal(), mean and deviation are those of the logarithm.
void normal(at::Tensor& out, runtime::PhiloxState start, double mean, double deviation);
void log_normal(at::Tensor& out, runtime::PhiloxState start, double mean, double deviation);
void exponential(at::Tensor& out, runtime::PhiloxState start, double lambda);
void cauchy(at::Tensor& out, runtime::PhiloxState start, double median, double sigma);

// Draws the number of trials up to the first success, which is at least 1. The output may have any real dtype.
void geometric(at::Tensor& out, runtime::PhiloxState start, double p);

// Draws 1 with probability `p`, else 0. The output may have any real dtype or bool.
void bernoulli(at::Tensor& out, runtime::PhiloxState start, double p);

// Same as `bernoulli()`, except that each element has its own probability. `p` broadcasts to the output. Throws
// c10::Error for a probability outside [0, 1] or NaN. That becomes the device's sticky error, as on CUDA, because only
// the kernel reads the data.
void bernoulli_of_tensor(at::Tensor& out, const at::Tensor& p, runtime::PhiloxState start);

// Draws whole numbers in [from, from + range), modulo 2^64. A range of 0 means 2^64. The output may have any real
// dtype, bool, uint16, uint32 or uint64.
void integers(at::Tensor& out, runtime::PhiloxState start, uint64_t range, int64_t from);

// Draws whole numbers from 0 to n, both included. For a floating-point dtype, n is the largest number up to which the
// dtype represents every whole number exactly, such as 2^24 for float32; else it is the largest number of the dtype.
// The output may have the dtypes of integers().
void any_integers(at::Tensor& out, runtime::PhiloxState start);

// Writes the numbers from 0 to numel() - 1 in a random order. The output has one dimension, and a real dtype that
// represents these numbers.
void permutation(at::Tensor& out, runtime::PhiloxState start);

// Draws categories with replacement, with probabilities in proportion to the weights. The weights are (categories) or
// (rows, categories) of any real dtype, and the output is (draws) or (rows, draws) of int64. Throws c10::Error, which
// becomes the device's sticky error, if a weight is negative or the sum of a row is not positive and finite.
void multinomial(at::Tensor& out, const at::Tensor& weights, int64_t draws, runtime::PhiloxState start);

// Rejection samplers -------------------------------------------------------------------------------------------------

// The number of generator steps that a launch of a sampler reserves, whatever the size of the output. A sampler needs
// an unknown number of random numbers for each element. So each element has its own subsequence of the generator, and
// may use this many steps of it.
constexpr int64_t kSamplerSteps = 1024;

// Fill a contiguous output of a floating-point dtype. Parameters have a floating-point dtype and the output's shape;
// those of binomial() may broadcast to it. gamma() has scale 1. Each row of the last dimension is one draw of
// dirichlet(). poisson() throws c10::Error for a rate that is NaN, negative or at least 2^63, which becomes the
// device's sticky error.
void poisson(const at::Tensor& rate, at::Tensor& out, runtime::PhiloxState start);
void binomial(const at::Tensor& count, const at::Tensor& probability, at::Tensor& out, runtime::PhiloxState start);
void gamma(const at::Tensor& shape, at::Tensor& out, runtime::PhiloxState start);
void dirichlet(const at::Tensor& concentration, at::Tensor& out, runtime::PhiloxState start);

}  // namespace openreg::ops::kernels
