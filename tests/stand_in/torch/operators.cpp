// LibTorch's operators on tensors of a device, without libtorch_cuda: each runs the CPU's kernel on
// the same memory when its stream has done what it had, and counts as work of that stream. The
// program has waited only where libtorch_cuda waits.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/mm.h>
#include <c10/core/CPUAllocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "../cuda/stand_in_cuda.hpp"
#include "tensor_memory.hpp"

namespace hetseq::stand_in {

namespace {

constexpr c10::DispatchKeySet cuda_keys{c10::DispatchKey::CUDA};

std::atomic<long> made{0};
std::atomic<long> until_failure{-1};

// For one tensor. Throws c10::OutOfMemoryError for the one that a test asked to fail.
c10::Allocator* device_memory() {
    at::globalContext().lazyInitDevice(c10::kCUDA);
    ++made;
    if (until_failure >= 0 && until_failure-- == 0)
        TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. The stand-in was told so.");
    return c10::cuda::CUDACachingAllocator::get();
}

c10::Device device_or_current(std::optional<c10::Device> device) {
    if (device && device->has_index())
        return *device;
    return {c10::kCUDA, c10::cuda::current_device()};
}

at::Tensor empty(c10::IntArrayRef size,
                 std::optional<at::ScalarType> type,
                 std::optional<at::Layout>,
                 std::optional<at::Device> device,
                 std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
    const c10::cuda::CUDAGuard guard{device_or_current(device)};
    return at::detail::empty_generic(
        size, device_memory(), cuda_keys, at::dtype_or_default(type), format);
}

at::Tensor empty_strided(c10::IntArrayRef size,
                         c10::IntArrayRef stride,
                         std::optional<at::ScalarType> type,
                         std::optional<at::Layout>,
                         std::optional<at::Device> device,
                         std::optional<bool>) {
    const c10::cuda::CUDAGuard guard{device_or_current(device)};
    return at::detail::empty_strided_generic(
        size, stride, device_memory(), cuda_keys, at::dtype_or_default(type));
}

// A tensor on the CPU over the memory of `storage`, shaped as `like`.
at::Tensor shaped(c10::Storage storage, const at::Tensor& like, c10::DispatchKeySet keys) {
    at::Tensor tensor =
        at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, like.dtype());
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(
        like.sizes(), like.strides(), like.storage_offset());
    return tensor;
}

// The bytes from the first element of `tensor` to the last one.
Use use_of(const at::Tensor& tensor, Access access) {
    if (tensor.numel() == 0)
        return {};
    std::int64_t last = 0;
    for (std::int64_t i = 0; i < tensor.dim(); ++i)
        last += (tensor.size(i) - 1) * tensor.stride(i);
    return {tensor.const_data_ptr(),
            (static_cast<std::size_t>(last) + 1) * tensor.element_size(),
            access};
}

// The tensors of one call on the device, and their images on the CPU.
class Images {
public:
    at::Tensor image(const at::Tensor& tensor, Access access = Access::read) {
        if (!tensor.defined() || !tensor.is_cuda())
            return tensor;
        device_ = tensor.device();
        uses_.push_back(use_of(tensor, access));
        auto& pair = storages_[tensor.storage().unsafeGetStorageImpl()];
        if (!pair.second)
            pair = {tensor.storage(), image(tensor.storage())};
        const at::Tensor image =
            shaped(pair.second, tensor, c10::DispatchKeySet(c10::DispatchKey::CPU));
        if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
            image.unsafeGetTensorImpl()->set_wrapped_number(true);
        tensors_.emplace_back(tensor, image);
        return image;
    }

    // The tensor on the device that stands for `result`.
    at::Tensor original(const at::Tensor& result) {
        if (!result.defined() || !result.is_cpu())
            return result;
        for (const auto& [tensor, image] : tensors_)
            if (image.is_same(result))
                return tensor;
        for (const auto& [key, pair] : storages_)
            if (pair.second.unsafeGetStorageImpl() == result.storage().unsafeGetStorageImpl())
                return shaped(pair.first, result, cuda_keys);
        return upload(result);
    }

    // An operator may give its outputs other sizes or more memory.
    void bring_back_new_shapes() {
        for (const auto& [tensor, image] : tensors_) {
            const bool grown = image.storage().data() != tensor.storage().data();
            if (grown)
                tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(upload(image).storage());
            if (grown || image.sizes() != tensor.sizes() || image.strides() != tensor.strides())
                tensor.unsafeGetTensorImpl()->set_sizes_and_strides(
                    image.sizes(), image.strides(), image.storage_offset());
        }
    }

    void set_device(c10::Device device) { device_ = device; }
    const std::optional<c10::Device>& device() const { return device_; }
    const std::vector<Use>& uses() const { return uses_; }

private:
    static c10::Storage image(const c10::Storage& storage) {
        void* const memory = storage.mutable_data();
        return c10::Storage(c10::Storage::use_byte_size_t(),
                            storage.nbytes(),
                            c10::DataPtr(memory, c10::kCPU),
                            c10::GetCPUAllocator(),
                            /*resizable=*/true);
    }

    at::Tensor upload(const at::Tensor& result) {
        const c10::cuda::CUDAGuard guard{device_or_current(device_)};
        const std::size_t bytes = result.storage().nbytes();
        c10::Allocator* const allocator = device_memory();
        c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, allocator, true);
        if (bytes > 0)
            std::memcpy(storage.mutable_data(), result.storage().data(), bytes);
        at::Tensor uploaded = shaped(std::move(storage), result, cuda_keys);
        uses_.push_back(use_of(uploaded, Access::write));
        if (result.unsafeGetTensorImpl()->is_wrapped_number())
            uploaded.unsafeGetTensorImpl()->set_wrapped_number(true);
        return uploaded;
    }

    std::optional<c10::Device> device_;
    std::map<c10::StorageImpl*, std::pair<c10::Storage, c10::Storage>> storages_;
    std::vector<std::pair<at::Tensor, at::Tensor>> tensors_;
    std::vector<Use> uses_;
};

// `change(tensor)` of every tensor in `value`.
template <class Change>
c10::IValue changed(const c10::IValue& value, Change&& change) {
    if (value.isTensor())
        return change(value.toTensor());
    if (value.isTensorList()) {
        std::vector<at::Tensor> tensors;
        for (const at::Tensor& tensor : value.toTensorVector())
            tensors.push_back(change(tensor));
        return tensors;
    }
    if (value.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> tensors;
        for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
            tensors.push_back(tensor ? std::optional<at::Tensor>(change(*tensor)) : std::nullopt);
        return tensors;
    }
    return value;
}

// Whether the operator writes the memory of an argument: Tensor(a!), or Tensor(a!)[].
bool is_written(const c10::Argument& argument) {
    const c10::AliasInfo* const alias = argument.alias_info();
    return alias != nullptr &&
           (alias->isWrite() ||
            std::any_of(alias->containedTypes().begin(),
                        alias->containedTypes().end(),
                        [](const c10::AliasInfo& contained) { return contained.isWrite(); }));
}

// Whether the operator gives other views of its arguments and touches no memory: Tensor(a).
bool makes_views(const c10::FunctionSchema& schema) {
    return !schema.returns().empty() &&
           std::all_of(
               schema.returns().begin(), schema.returns().end(), [](const c10::Argument& result) {
                   return result.alias_info() != nullptr && !is_written(result);
               });
}

// Whether the host waits for the result in libtorch_cuda, whose sizes or value depend on numbers.
bool makes_host_wait(const c10::FunctionSchema& schema, const std::vector<c10::IValue>& arguments) {
    static const std::set<std::string> waiting{"aten::_local_scalar_dense",
                                               "aten::bincount",
                                               "aten::equal",
                                               "aten::masked_select",
                                               "aten::nonzero",
                                               "aten::repeat_interleave",
                                               "aten::_unique2"};
    const auto has_mask = [](const c10::IValue& argument) {
        if (!argument.isOptionalTensorList())
            return false;
        const auto indices = argument.toOptionalTensorVector();
        return std::any_of(indices.begin(), indices.end(), [](const auto& index) {
            return index &&
                   (index->scalar_type() == at::kBool || index->scalar_type() == at::kByte);
        });
    };
    return waiting.count(schema.name()) > 0 ||
           std::any_of(arguments.begin(), arguments.end(), has_mask);
}

bool is_narrow(const c10::IValue& value) {
    return value.isTensor() && value.toTensor().defined() &&
           c10::isReducedFloatingType(value.toTensor().scalar_type());
}

void widen(torch::jit::Stack::iterator begin, torch::jit::Stack::iterator end) {
    for (auto value = begin; value != end; ++value)
        if (is_narrow(*value))
            *value = value->toTensor().to(at::kFloat);
}

// Products of 16 bits are summed in fp32 and rounded once, as tensor cores do; a softmax may read
// 16 bits and give fp32, or the other way round. The CPU's kernels do so slowly, or not at all.
bool computes_in_fp32(const std::string& name,
                      torch::jit::Stack::iterator begin,
                      torch::jit::Stack::iterator end) {
    static const std::set<std::string> products{
        "aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm"};
    static const std::set<std::string> forward{"aten::_softmax", "aten::_log_softmax"};
    static const std::set<std::string> backward{"aten::_softmax_backward_data",
                                                "aten::_log_softmax_backward_data"};
    const bool has_narrow = std::any_of(begin, end, is_narrow);
    if (products.count(name) > 0)
        return has_narrow;
    if (forward.count(name) > 0 && has_narrow) {
        *(end - 1) = false;  // half_to_float
        return true;
    }
    if (backward.count(name) == 0 || !c10::isReducedFloatingType((end - 1)->toScalarType()))
        return false;
    *(end - 1) = at::kFloat;  // input_dtype
    return true;
}

// Convolutions of 16 bits are computed so too. They give new tensors.
bool convolves_in_16_bits(const std::string& name,
                          torch::jit::Stack::iterator begin,
                          torch::jit::Stack::iterator end) {
    static const std::set<std::string> convolutions{"aten::_slow_conv2d_forward",
                                                    "aten::_slow_conv2d_backward"};
    return convolutions.count(name) > 0 && std::any_of(begin, end, is_narrow);
}

void convolve_in_fp32(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const auto begin = stack->end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size());
    const at::ScalarType type =
        std::find_if(begin, stack->end(), is_narrow)->toTensor().scalar_type();
    widen(begin, stack->end());
    op.callBoxed(stack);
    const auto results = stack->end() - static_cast<std::ptrdiff_t>(op.schema().returns().size());
    for (auto result = results; result != stack->end(); ++result)
        *result =
            changed(*result, [&](const at::Tensor& t) { return t.defined() ? t.to(type) : t; });
}

// LibTorch calls the other operators with a tensor for the result, the last argument.
void call_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const auto begin = stack->end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size());
    if (convolves_in_16_bits(op.schema().name(), begin, stack->end())) {
        convolve_in_fp32(op, stack);
        return;
    }
    if (op.schema().overload_name() != "out" ||
        !computes_in_fp32(op.schema().name(), begin, stack->end() - 1)) {
        op.callBoxed(stack);
        return;
    }
    const at::Tensor out = stack->back().toTensor();
    widen(begin, stack->end());
    op.callBoxed(stack);
    out.copy_(stack->back().toTensor());
    stack->back() = out;
}

void run_on_cpu(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
    Images images;
    const c10::FunctionSchema& schema = op.schema();
    const char* const name = schema.name().c_str();
    const auto first_argument =
        stack->end() - static_cast<std::ptrdiff_t>(schema.arguments().size());
    const bool waits = makes_host_wait(schema, {first_argument, stack->end()});
    for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
        c10::IValue& argument = *(first_argument + static_cast<std::ptrdiff_t>(i));
        const Access access = is_written(schema.arguments()[i]) ? Access::write : Access::read;
        if (argument.isDevice() && argument.toDevice().is_cuda()) {
            images.set_device(argument.toDevice());
            argument = c10::Device(c10::kCPU);
        } else {
            argument =
                changed(argument, [&](const at::Tensor& t) { return images.image(t, access); });
        }
    }
    const c10::cuda::CUDAGuard guard{device_or_current(images.device())};
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream().stream();
    if (!makes_views(schema))
        drain(stream);
    call_on_cpu(op, stack);
    images.bring_back_new_shapes();
    const auto first_result = stack->end() - static_cast<std::ptrdiff_t>(schema.returns().size());
    for (auto result = first_result; result != stack->end(); ++result)
        *result = changed(*result, [&](const at::Tensor& t) { return images.original(t); });
    if (makes_views(schema))
        return;
    count("operator", name);
    work_in_place(stream, name, images.uses());
    if (waits)
        wait_for_stream(stream, name);
}

// Like libtorch_cuda's: plain copies are asynchronous where they may be.
at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
    if (self.numel() == 0)
        return self;
    const c10::cuda::CUDAGuard guard{self.is_cuda() ? self.device() : source.device()};
    const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
    const bool plain = self.dtype() == source.dtype() && self.sizes() == source.sizes() &&
                       self.is_contiguous() && source.is_contiguous() && !source.is_neg() &&
                       !source.is_conj();
    if (plain && non_blocking) {
        C10_CUDA_CHECK(cudaMemcpyAsync(self.mutable_data_ptr(),
                                       source.const_data_ptr(),
                                       self.nbytes(),
                                       cudaMemcpyDefault,
                                       stream.stream()));
        // As libtorch_cuda's pinned memory, which is not given out before the copy is done.
        for (const at::Tensor& host : {self, source})
            if (host.is_cpu())
                launch(stream.stream(), [storage = host.storage()] {});
        return self;
    }
    drain(stream.stream());
    Images images;
    const at::Tensor from = images.image(source);
    images.image(self, Access::write).copy_(from);
    count("operator", "aten::copy_");
    work_in_place(stream.stream(), "aten::copy_", images.uses());
    if (!self.is_cuda() || !source.is_cuda())
        wait_for_stream(stream.stream(), "aten::copy_");
    return self;
}

// A product of 16 bits that is never rounded to them, which the CPU lacks.
at::Tensor wide_mm(const at::Tensor& a, const at::Tensor& b, at::ScalarType type) {
    const c10::cuda::CUDAGuard guard{a.device()};
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream().stream();
    drain(stream);
    Images images;
    const at::Tensor product = at::mm(images.image(a).to(type), images.image(b).to(type));
    const at::Tensor result = images.original(product);
    count("operator", "aten::mm");
    work_in_place(stream, "aten::mm", images.uses());
    return result;
}

// One kernel for all, as libtorch_cuda has it. The dispatcher would add one by one.
void add_all(at::TensorList sums, at::TensorList added, const at::Scalar& factor) {
    if (sums.empty())
        return;
    const c10::cuda::CUDAGuard guard{sums[0].device()};
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream().stream();
    drain(stream);
    Images images;
    for (std::size_t i = 0; i < sums.size(); ++i)
        images.image(sums[i], Access::write).add_(images.image(added[i]), factor);
    count("operator", "aten::_foreach_add_");
    work_in_place(stream, "aten::_foreach_add_", images.uses());
}

void record_stream(at::Tensor& self, c10::Stream stream) {
    c10::cuda::CUDACachingAllocator::recordStream(self.storage().data_ptr(),
                                                  c10::cuda::CUDAStream(stream));
}

}  // namespace

long tensors_made() {
    return made;
}

void fail_tensor_after(long count) {
    until_failure = count;
}

}  // namespace hetseq::stand_in

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
    library.impl("empty.memory_format", TORCH_FN(hetseq::stand_in::empty));
    library.impl("empty_strided", TORCH_FN(hetseq::stand_in::empty_strided));
    library.impl("copy_", TORCH_FN(hetseq::stand_in::copy));
    library.impl("record_stream", TORCH_FN(hetseq::stand_in::record_stream));
    library.impl("_foreach_add_.List", TORCH_FN(hetseq::stand_in::add_all));
    library.impl("mm.dtype", TORCH_FN(hetseq::stand_in::wide_mm));  // since LibTorch 2.8
}

TORCH_LIBRARY_IMPL(_, CUDA, library) {
    library.fallback(torch::CppFunction::makeFromBoxedFunction<&hetseq::stand_in::run_on_cpu>());
}
