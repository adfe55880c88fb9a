#include "hetseq/train/checkpoint/whole_model.hpp"

#include <exception>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/util/files/safetensors.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/peer_transfers.hpp"
#include "hetseq/model/files/tensor_types.hpp"
#include "hetseq/train/checkpoint/checkpoint_files.hpp"

#include "own_files.hpp"

namespace hetseq {

namespace {

constexpr int writer = 0;

// What this rank sends of the file, in the order of its bytes.
struct Sent {
    std::vector<PeerTransfer> transfers;
    std::vector<at::Tensor> on_host;  // keep the bytes alive
};

Sent sent_of(const CheckpointFile& model, int rank) {
    Sent sent;
    for (const std::size_t t : order_in_file(model))
        for (const CheckpointPart& part : model.tensors[t].parts) {
            const int from = part.holder == CheckpointPart::every_rank ? writer : part.holder;
            const auto bytes =
                static_cast<std::size_t>(part.numel) * at::elementSize(model.tensors[t].type);
            sent.transfers.push_back({from, writer, bytes, nullptr});
            if (from != rank)
                continue;
            sent.on_host.push_back(part.values.detach().cpu().contiguous());
            sent.transfers.back().data = sent.on_host.back().const_data_ptr();
        }
    return sent;
}

}  // namespace

// Who writes takes what the others send also where it has failed.
void save_whole_model(const HostComm& world,
                      const CheckpointFile& model,
                      const std::filesystem::path& path,
                      const std::function<void()>& before_naming) {
    const Sent sent = agree_on(world, [&] { return sent_of(model, world.rank()); });
    PeerTransfers transfers{world, sent.transfers, PeerTransfers::Options{}};
    std::optional<SafetensorsWriter> file;
    std::exception_ptr failure;
    const auto attempt = [&](const auto& work) {
        try {
            if (!failure && world.rank() == writer)
                work();
        } catch (...) {
            failure = std::current_exception();
        }
    };
    attempt([&] { file.emplace(path, entries_of(model), written_by()); });
    transfers.move([&](std::size_t, std::span<const std::byte> bytes) {
        attempt([&] { file->write(bytes.data(), bytes.size()); });
    });
    attempt([&] { file->finish(before_naming); });
    agree(world, failure);
}

}  // namespace hetseq
