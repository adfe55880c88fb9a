#include "hetseq/train/pipeline/pair_sum.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/mpi/peer_channel.hpp"
#include "hetseq/balance/pipeline/chain_problem.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t block = 64;  // elements; rows of most embeddings are a few of them

// (n / block, block)
at::Tensor blocks_of(const at::Tensor& flat) {
    const std::int64_t blocks = flat.numel() / block;
    return flat.narrow(0, 0, blocks * block).view({blocks, block});
}

// Behind the last whole block.
at::Tensor rest_of(const at::Tensor& flat) {
    const std::int64_t rest = flat.numel() % block;
    return flat.narrow(0, flat.numel() - rest, rest);
}

at::ScalarType words_of(const at::Tensor& tensor) {
    switch (tensor.element_size()) {
        case 2:
            return at::kShort;
        case 4:
            return at::kInt;
        default:
            return at::kLong;
    }
}

// Numbers of the blocks with a bit that is set. -0 has one: the sum with it has other bits than the
// sum with 0, which may be left out.
at::Tensor filled_blocks(const at::Tensor& blocks) {
    return blocks.view(words_of(blocks)).ne(0).any(1).nonzero().squeeze(1);
}

double part_of(const at::Tensor& filled, const at::Tensor& blocks) {
    if (blocks.size(0) == 0)
        return 1;
    const double part = static_cast<double>(filled.numel()) / static_cast<double>(blocks.size(0));
    return part < TiedUnits::sent_whole_from ? part : 1;
}

}  // namespace

class PairSum::InFlight final : public Work {
public:
    InFlight(PairSum& sum, const at::Tensor& tensor)
        : sum_{sum}, number_{++sum.started_}, tensor_{tensor}, begin_s_{monotonic_seconds()} {
        const at::NoGradGuard no_grad;
        const at::Tensor blocks = blocks_of(tensor);
        const at::Tensor filled = filled_blocks(blocks);
        is_sent_whole_ = part_of(filled, blocks) == 1;
        if (is_sent_whole_)
            sum.channel_.start_send(sum.peer_, {tensor});
        else
            sum.channel_.start_send(
                sum.peer_,
                {filled.to(at::kInt), blocks.index_select(0, filled), rest_of(tensor).clone()});
    }

    // Later ones may be more than the other rank takes in before it has received this one.
    void wait() override {
        if (is_complete_)
            return;
        const at::NoGradGuard no_grad;
        const std::vector<at::Tensor> received = sum_.channel_.receive(sum_.peer_);
        if (is_sent_whole_)
            sum_.channel_.wait_for_sends(sum_.peer_, sum_.started_ - number_);
        add(received);
        const double end_s = monotonic_seconds();
        own_ms_ = 1000 * (end_s - std::max(begin_s_, std::exchange(sum_.last_end_s_, end_s)));
        is_complete_ = true;
    }
    /// The sum is made in `wait`.
    bool done() override { return is_complete_; }
    double own_ms() override { return own_ms_; }

private:
    void add(const std::vector<at::Tensor>& received) {
        if (received.size() == 1) {
            tensor_.add_(received.front());
            return;
        }
        HETSEQ_ASSERT(received.size() == 3);
        const at::Tensor blocks = blocks_of(tensor_);
        const at::Tensor filled = received[0].to(at::kLong);
        const at::Tensor sums = blocks.index_select(0, filled).add_(received[1]);
        blocks.add_(0);  // -0 and what was left out are 0
        blocks.index_copy_(0, filled, sums);
        rest_of(tensor_).add_(received[2]);
    }

    PairSum& sum_;
    std::size_t number_;  // from 1
    at::Tensor tensor_;
    double begin_s_;
    bool is_sent_whole_ = false;
    bool is_complete_ = false;
    double own_ms_ = 0;
};

PairSum::PairSum(PeerChannel& channel, int peer) : channel_{channel}, peer_{peer} {}

std::unique_ptr<Work> PairSum::start(const at::Tensor& tensor) {
    HETSEQ_ASSERT(tensor.dim() == 1 && tensor.is_contiguous() && tensor.is_floating_point());
    return std::make_unique<InFlight>(*this, tensor);
}

double sent_part(const at::Tensor& tensor) {
    const at::Tensor blocks = blocks_of(tensor);
    return part_of(filled_blocks(blocks), blocks);
}

}  // namespace hetseq
