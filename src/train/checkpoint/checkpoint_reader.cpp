#include "hetseq/train/checkpoint/checkpoint_reader.hpp"

#include <string>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/manifest.hpp"
#include "hetseq/util/files/safetensors.hpp"
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

// The tensor itself if a file can be read into it: new memory costs more than reading.
at::Tensor memory_to_read(const at::Tensor& target) {
    if (target.device().is_cpu() && target.is_contiguous())
        return target;
    return at::empty(target.sizes(), target.options().device(at::kCPU));
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

TrainingState verified_state(const HostComm& world, const std::filesystem::path& folder) {
    const std::string text = agree_on(world, [&] {
        if (world.rank() != 0)
            return std::string();
        const Manifest manifest = read_manifest(folder);
        check_names(manifest, folder);
        return manifest_json(manifest);
    });
    const Manifest manifest = parse_manifest(world.broadcast(text, 0), folder);
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
        std::vector<at::Tensor> values;
        for (const NamedTensor& stored : files[i].tensors)
            values.push_back(memory_to_read(stored.tensor));
        agree_on(world, [&] {
            if (checkpoint_owner(i, world.size()) != world.rank())
                return;
            SafetensorsReader reader(folder / files[i].name);
            for (std::size_t t = 0; t < values.size(); ++t)
                reader.read(*reader.find(files[i].tensors[t].name), values[t].mutable_data_ptr());
        });
        const int root = checkpoint_owner(i, world.size());
        for (std::size_t t = 0; t < values.size(); ++t)
            hand_out(communicator, values[t], files[i].tensors[t].tensor, root);
    }
}

}  // namespace hetseq
