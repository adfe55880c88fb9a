#include "hetseq/train/checkpoint/checkpoint_reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

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
    at::Tensor target;
    at::Tensor read = {};  // in host memory; undefined on other ranks than that one
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
            shared.push_back({tensor.name, first, part.values});
    });
    return shared;
}

void read_shared(SafetensorsReader& reader, std::vector<Shared>& shared) {
    for (Shared& part : shared) {
        part.read = memory_to_read(part.target);
        reader.read(
            *reader.find(part.name), part.first, part.read.nbytes(), part.read.mutable_data_ptr());
    }
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

// Gives all ranks what rank `root` has read.
void hand_out(Communicator& communicator, const Shared& part, int root) {
    const at::Device device = communicator.device();
    const bool is_there = part.target.device() == device && part.target.is_contiguous();
    const at::Tensor on_device =
        part.read.defined() ? part.read.to(device).contiguous()
        : is_there          ? part.target
                            : at::empty(part.target.sizes(), part.target.options().device(device));
    communicator.broadcast(on_device, root);
    if (!on_device.is_alias_of(part.target))
        part.target.copy_(on_device);
}

// Files of unlike ranks, each of which reads its own, and of all of them the parts that it holds.
// Then what every rank holds is handed out.
void load_files(const HostComm& world,
                Communicator& communicator,
                const std::filesystem::path& folder,
                const std::map<int, const CheckpointFile*>& by_root) {
    std::map<int, std::vector<Shared>> shared;
    for (const auto& [root, file] : by_root)
        shared[root] = shared_parts(*file);
    agree_on(world, [&] {
        for (const auto& [root, file] : by_root) {
            if (world.rank() != root && !has_parts_of(*file, world.rank()))
                continue;
            SafetensorsReader reader(folder / file->name);
            read_held_parts(reader, *file, world.rank());
            if (world.rank() == root)
                read_shared(reader, shared[root]);
        }
    });
    for (const auto& [root, parts] : shared)
        for (const Shared& part : parts)
            hand_out(communicator, part, root);
}

// In the order in which ranks read them, one of each rank at a time: that bounds what is in host
// memory.
std::vector<std::map<int, const CheckpointFile*>> rounds_of(
    const std::vector<CheckpointFile>& files, int ranks) {
    std::vector<std::map<int, const CheckpointFile*>> rounds;
    const std::vector<int> roots = checkpoint_owners(files, ranks);
    for (std::size_t i = 0; i < files.size(); ++i) {
        const auto round = std::find_if(rounds.begin(), rounds.end(), [&](const auto& of_roots) {
            return of_roots.count(roots[i]) == 0;
        });
        (round == rounds.end() ? rounds.emplace_back() : *round)[roots[i]] = &files[i];
    }
    return rounds;
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
    std::vector<std::int64_t> bytes;
    for (const auto& [name, digest] : manifest.files)
        bytes.push_back(static_cast<std::int64_t>(digest.bytes));
    const std::vector<int> owners = checkpoint_owners(bytes, world.size());
    agree_on(world, [&] {
        std::size_t index = 0;
        for (const auto& [name, digest] : manifest.files)
            if (owners[index++] == world.rank())
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
            if (static_cast<int>(i) % world.size() == world.rank())
                check_fits(files[i], folder);
    });
    for (const auto& round : rounds_of(files, world.size()))
        load_files(world, communicator, folder, round);
}

}  // namespace hetseq
