#include "hetseq/train/checkpoint/checkpoint_reader.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/manifest.hpp"
#include "hetseq/util/files/safetensors.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/host_comm.hpp"

namespace hetseq {

namespace {

void check_names(const Manifest& manifest, const std::filesystem::path& folder) {
    for (const char* name : {TrainingState::file_name, "model.safetensors"})
        if (manifest.files.count(name) == 0)
            throw BadData((folder / Manifest::file_name).string() + " lists no " + name,
                          "every checkpoint has one");
}

constexpr std::int64_t staging_bytes = 16 << 20;

// What every rank holds: one rank reads it, and hands it out.
struct Shared {
    std::string name;
    std::uint64_t first;  // byte of the tensor
    at::Tensor values;    // in host memory
    at::Tensor target;
};

// The tensor itself if a file can be read into it: new memory costs more than reading.
at::Tensor memory_to_read(const at::Tensor& target) {
    if (target.device().is_cpu() && target.is_contiguous())
        return target;
    return at::empty(target.sizes(), target.options().device(at::kCPU));
}

// Fills `target` with the tensor's bytes from `first` on, through a piece of host memory.
void read_staged(SafetensorsReader& reader,
                 const SafetensorEntry& entry,
                 std::uint64_t first,
                 const at::Tensor& target) {
    const at::Tensor flat =
        target.is_contiguous() ? target.view({-1}) : at::empty({target.numel()}, target.options());
    const std::int64_t most = std::min(staging_bytes / target.element_size(), flat.numel());
    const at::Tensor staging = at::empty({most}, target.options().device(at::kCPU));
    for (std::int64_t begin = 0; begin < flat.numel(); begin += most) {
        const at::Tensor piece = staging.narrow(0, 0, std::min(most, flat.numel() - begin));
        const auto offset = static_cast<std::uint64_t>(begin * target.element_size());
        reader.read(entry, first + offset, piece.nbytes(), piece.mutable_data_ptr());
        flat.narrow(0, begin, piece.numel()).copy_(piece);
        activity::progress();
    }
    if (!flat.is_alias_of(target))
        target.copy_(flat.view(target.sizes()));
}

// Fills `target`, which this rank holds.
void read_held(SafetensorsReader& reader,
               const SafetensorEntry& entry,
               std::uint64_t first,
               const at::Tensor& target) {
    if (target.device().is_cpu() && target.is_contiguous())
        reader.read(entry, first, target.nbytes(), target.mutable_data_ptr());
    else
        read_staged(reader, entry, first, target);
}

// Calls `visit(tensor, part, first)` for each part, with the first one of its tensor's bytes.
template <class Visit>
void for_each_part(const CheckpointFile& file, const Visit& visit) {
    for (const CheckpointTensor& tensor : file.tensors) {
        std::uint64_t first = 0;
        for (const CheckpointPart& part : tensor.parts) {
            visit(tensor, part, first);
            first += static_cast<std::uint64_t>(part.numel) * at::elementSize(tensor.type);
        }
    }
}

std::vector<Shared> shared_parts(const CheckpointFile& file) {
    std::vector<Shared> shared;
    for_each_part(file, [&](const auto& tensor, const CheckpointPart& part, std::uint64_t first) {
        if (part.holder == CheckpointPart::every_rank)
            shared.push_back({tensor.name, first, memory_to_read(part.values), part.values});
    });
    return shared;
}

// Reads the parts that `rank` alone holds.
void read_held_parts(SafetensorsReader& reader, const CheckpointFile& file, int rank) {
    for_each_part(file, [&](const auto& tensor, const CheckpointPart& part, std::uint64_t first) {
        if (part.holder == rank)
            read_held(reader, *reader.find(tensor.name), first, part.values);
    });
}

bool has_parts_of(const CheckpointFile& file, int rank) {
    bool has = false;
    for_each_part(file, [&](const auto&, const CheckpointPart& part, std::uint64_t) {
        has = has || part.holder == rank;
    });
    return has;
}

// Gives all ranks what rank `root` has read into `values`.
void hand_out(Communicator& communicator,
              const at::Tensor& values,
              const at::Tensor& target,
              int root) {
    const at::Tensor on_device = values.to(communicator.device()).contiguous();
    communicator.broadcast(on_device, root);
    target.copy_(on_device);
}

}  // namespace

TrainingState verified_state(const HostComm& world,
                             const std::filesystem::path& folder,
                             OptimizerFiles optimizer) {
    const std::string text = agree_on(world, [&] {
        if (world.rank() != 0)
            return std::string();
        const Manifest manifest = read_manifest(folder);
        check_names(manifest, folder);
        return manifest_json(manifest);
    });
    Manifest manifest = parse_manifest(world.broadcast(text, 0), folder);
    if (optimizer == OptimizerFiles::left_out)
        std::erase_if(manifest.files,
                      [](const auto& file) { return is_optimizer_file(file.first); });
    agree_on(world, [&] {
        std::size_t index = 0;
        for (const auto& [name, digest] : manifest.files)
            if (checkpoint_owner(index++, world.size()) == world.rank())
                verify_file(folder, name, digest);
    });
    const std::string state = agree_on(world, [&] {
        return world.rank() == 0 ? training_state_json(read_training_state(folder)) : std::string();
    });
    return parse_training_state(world.broadcast(state, 0), folder);
}

void load_checkpoint(const HostComm& world,
                     Communicator& communicator,
                     const std::filesystem::path& folder,
                     const std::vector<CheckpointFile>& files) {
    const at::NoGradGuard no_grad;
    agree_on(world, [&] {
        for (std::size_t i = 0; i < files.size(); ++i)
            if (checkpoint_owner(i, world.size()) == world.rank())
                check_fits(files[i], folder);
    });
    for (std::size_t i = 0; i < files.size(); ++i) {
        const int root = checkpoint_owner(i, world.size());
        const std::vector<Shared> shared = shared_parts(files[i]);
        agree_on(world, [&] {
            if (world.rank() != root && !has_parts_of(files[i], world.rank()))
                return;
            SafetensorsReader reader(folder / files[i].name);
            read_held_parts(reader, files[i], world.rank());
            if (world.rank() == root)
                for (const auto& [name, first, values, target] : shared)
                    reader.read(
                        *reader.find(name), first, values.nbytes(), values.mutable_data_ptr());
        });
        for (const Shared& part : shared)
            hand_out(communicator, part.values, part.target, root);
    }
}

}  // namespace hetseq
