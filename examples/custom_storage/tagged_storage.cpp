// SPDX-License-Identifier: BSD-3-Clause
// A storage of a backend's own class: besides the bytes, it knows which bank of memory they should lie in. Compiled
// when it is loaded, by torch.utils.cpp_extension.load(); the chapter "Custom storage" of the guide does so.
#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <torch/library.h>

#include <utility>

namespace {

// What a vendor would keep here: the bank, a layout, a handle of the driver. Operators reach it from any tensor on the
// storage; views share it.
class TaggedStorage final : public c10::StorageImpl {
 public:
  using c10::StorageImpl::StorageImpl;

  int64_t bank = 0;
};

// PyTorch calls this instead of making a plain StorageImpl. `data` is null when the memory is still to be allocated.
c10::intrusive_ptr<c10::StorageImpl> create(c10::StorageImpl::use_byte_size_t, c10::SymInt size, c10::DataPtr data,
                                            c10::Allocator* allocator, bool resizable) {
  if (data == nullptr) {
    return c10::make_intrusive<TaggedStorage>(c10::StorageImpl::use_byte_size_t(), std::move(size), allocator,
                                              resizable);
  }
  return c10::make_intrusive<TaggedStorage>(c10::StorageImpl::use_byte_size_t(), std::move(size), std::move(data),
                                            allocator, resizable);
}

// Not every storage on the device is ours: operators that allocate by themselves, other libraries and other processes
// bring plain ones.
TaggedStorage* tagged(const at::Tensor& tensor) {
  return dynamic_cast<TaggedStorage*>(tensor.storage().unsafeGetStorageImpl());
}

int64_t bank_of(const at::Tensor& tensor) {
  const TaggedStorage* storage = tagged(tensor);
  return storage == nullptr ? -1 : storage->bank;
}

void set_bank(const at::Tensor& tensor, int64_t bank) {
  TaggedStorage* storage = tagged(tensor);
  TORCH_CHECK(storage != nullptr, "set_bank: the storage of this tensor on ", tensor.device(),
              " is a plain one; make it with torch.UntypedStorage(size, device='openreg')");
  storage->bank = bank;
}

[[maybe_unused]] const bool registered = [] {
  c10::SetStorageImplCreate(c10::DeviceType::PrivateUse1, &create);
  return true;
}();

}  // namespace

TORCH_LIBRARY_FRAGMENT(openreg, library) {
  library.def("bank_of(Tensor tensor) -> int");
  library.def("set_bank(Tensor tensor, int bank) -> ()");
}

TORCH_LIBRARY_IMPL(openreg, PrivateUse1, library) {
  library.impl("bank_of", &bank_of);
  library.impl("set_bank", &set_bank);
}
