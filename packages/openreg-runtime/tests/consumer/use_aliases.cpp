// SPDX-License-Identifier: BSD-3-Clause
// Aliases, which engine threads use again for later launches: a kernel gets those of its own operands, whatever an
// earlier kernel has kept or changed.
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <openreg.h>
#include <openreg/runtime/alias.h>
#include <openreg/runtime/allocator.h>
#include <openreg/runtime/device.h>
#include <openreg/runtime/launch.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace runtime = openreg::runtime;

namespace {

at::Tensor empty(c10::IntArrayRef sizes, c10::ScalarType dtype = c10::kFloat) {
  const c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
  return at::detail::empty_generic(sizes, &runtime::device_allocator(), keys, dtype, std::nullopt);
}

using Aliases = std::vector<at::Tensor>;

// Launches `kernel` with the aliases of the operands, and blocks until it has run. Throws what it throws.
void launch(const std::vector<at::Tensor>& operands, const std::function<void(Aliases&)>& kernel) {
  struct State {
    std::vector<runtime::AliasDescriptor> descriptors;
    std::function<void(Aliases&)> kernel;
    void operator()() {
      runtime::AliasStorages storages;
      Aliases aliases;
      for (runtime::AliasDescriptor& descriptor : descriptors) {
        aliases.push_back(descriptor.make_tensor(storages));
      }
      kernel(aliases);
    }
  };
  runtime::AliasBuilder builder("use_aliases");
  std::vector<runtime::AliasDescriptor> descriptors;
  for (const at::Tensor& operand : operands) {
    descriptors.push_back(builder.describe(operand));
  }
  runtime::launch_emplace("use_aliases", runtime::current_stream(0),
                          [&] { return State{std::move(descriptors), kernel}; });
  runtime::synchronize_device(0);
}

void check_is_plain_alias(const at::Tensor& alias, const at::Tensor& operand) {
  TORCH_CHECK(alias.const_data_ptr() == runtime::kernel_view(operand.const_data_ptr()), "the bytes are another's");
  TORCH_CHECK(alias.sizes() == operand.sizes() && alias.strides() == operand.strides(), "the geometry is another's");
  TORCH_CHECK(alias.dtype() == operand.dtype() && alias.nbytes() == operand.nbytes(), "the elements are another's");
  TORCH_CHECK(!alias.is_conj() && !alias.is_neg() && !alias.unsafeGetTensorImpl()->is_wrapped_number(), "has flags");
  TORCH_CHECK(!alias.storage().resizable() && alias.storage_offset() == 0, "the storage is a kernel's own");
}

// Launches a kernel on two other operands, and checks that it gets their aliases.
void check_next() {
  const at::Tensor x = empty({3}, c10::kLong);
  const at::Tensor y = empty({2, 5});
  launch({x, y}, [&](Aliases& aliases) {
    check_is_plain_alias(aliases[0], x);
    check_is_plain_alias(aliases[1], y);
    TORCH_CHECK(!aliases[0].is_alias_of(aliases[1]), "two tensors share a storage");
  });
}

void run() {
  runtime::ensure_initialized();
  const at::Tensor x = empty({4});
  const at::Tensor number = empty({}, c10::kComplexFloat);
  check_next();
  check_next();

  // The tensor of an alias whose launch has ended serves the next launch.
  const c10::TensorImpl* first = nullptr;
  launch({x}, [&](Aliases& aliases) { first = aliases[0].unsafeGetTensorImpl(); });
  launch({x}, [&](Aliases& aliases) {
    TORCH_CHECK(aliases[0].unsafeGetTensorImpl() == first, "the tensor of the last launch was not used again");
  });

  at::Tensor kept;
  launch({x}, [&](Aliases& aliases) { kept = aliases[0]; });
  check_next();
  check_is_plain_alias(kept, x);

  at::Storage storage;
  launch({x}, [&](Aliases& aliases) { storage = aliases[0].storage(); });
  check_next();
  TORCH_CHECK(storage.data() == runtime::kernel_view(x.const_data_ptr()), "a storage that was kept has other bytes");

  launch({x, x}, [](Aliases& aliases) { TORCH_CHECK(aliases[0].is_alias_of(aliases[1]), "one tensor, two storages"); });
  check_next();

  launch({number}, [](Aliases& aliases) { aliases[0]._set_conj(true); });
  check_next();
  launch({x}, [](Aliases& aliases) { aliases[0]._set_neg(true); });
  check_next();
  launch({number}, [](Aliases& aliases) { aliases[0].unsafeGetTensorImpl()->set_wrapped_number(true); });
  check_next();
  launch({x}, [](Aliases& aliases) {
    aliases[0].unsafeGetTensorImpl()->set_storage_and_dtype(at::detail::empty_cpu({7}, c10::kChar).storage(),
                                                            caffe2::TypeMeta::Make<int8_t>());
  });
  check_next();
}

}  // namespace

int main() {
  try {
    run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::printf("aliases: each kernel gets those of its own operands\n");
  return 0;
}
