// SPDX-License-Identifier: BSD-3-Clause
// The number types of the kernels, and choosing a kernel's instance by the type of its operands.
#pragma once

#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include <complex>
#include <cstdint>
#include <stdexcept>

namespace openreg::ops::raw {

using BFloat16 = c10::BFloat16;  // header-only number types, no part of ATen
using Half = c10::Half;

struct ComplexHalf {
  Half real;
  Half imag;
};

enum class Type : uint8_t {
  kBool,
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kComplex32,
  kComplex64,
  kComplex128,
};

// TypeOf<Value>::value is the Type of a C++ type; Accumulator<Value> is what sums of it are held in.
template <class Value>
struct TypeOf;
template <class Value>
using Accumulator = typename TypeOf<Value>::Accumulator;

#define OPENREG_RAW_TYPE(Value, name, Sum)    \
  template <>                                 \
  struct TypeOf<Value> {                      \
    static constexpr Type value = Type::name; \
    using Accumulator = Sum;                  \
  };
OPENREG_RAW_TYPE(bool, kBool, int64_t)
OPENREG_RAW_TYPE(uint8_t, kUInt8, int64_t)
OPENREG_RAW_TYPE(int8_t, kInt8, int64_t)
OPENREG_RAW_TYPE(int16_t, kInt16, int64_t)
OPENREG_RAW_TYPE(int32_t, kInt32, int64_t)
OPENREG_RAW_TYPE(int64_t, kInt64, int64_t)
OPENREG_RAW_TYPE(Half, kFloat16, float)
OPENREG_RAW_TYPE(BFloat16, kBFloat16, float)
OPENREG_RAW_TYPE(float, kFloat32, float)
OPENREG_RAW_TYPE(double, kFloat64, double)
OPENREG_RAW_TYPE(ComplexHalf, kComplex32, std::complex<float>)
OPENREG_RAW_TYPE(std::complex<float>, kComplex64, std::complex<float>)
OPENREG_RAW_TYPE(std::complex<double>, kComplex128, std::complex<double>)
#undef OPENREG_RAW_TYPE

template <class... Values>
struct Types {};
using Floats = Types<float, double, Half, BFloat16>;
using Integers = Types<uint8_t, int8_t, int16_t, int32_t, int64_t>;
using FloatsAndIntegers = Types<float, double, Half, BFloat16, uint8_t, int8_t, int16_t, int32_t, int64_t>;

template <class... Values>
constexpr bool contains(Types<Values...> /*list*/, Type type) {
  return ((TypeOf<Values>::value == type) || ...);
}

// Calls `visitor(Value())` with the C++ type of `type`. The host asks contains() first; a type that is not in the list
// is an error of the host part.
template <class... Values, class Visitor>
void visit(Types<Values...> /*list*/, Type type, Visitor&& visitor) {
  const bool found = ((TypeOf<Values>::value == type && (visitor(Values()), true)) || ...);
  if (!found) {
    throw std::invalid_argument("a kernel was launched for a type that it does not serve");
  }
}

}  // namespace openreg::ops::raw
