// In 16 bits the weights of an update are converted once, whatever its micro-batches. On several
// ranks they are the stages of a pipeline.
#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <c10/core/DeviceGuard.h>
#include <gtest/gtest.h>

#include "hetseq/comm/host/topology.hpp"
#include "hetseq/data/loading/device_transfer.hpp"
#include "hetseq/train/update_status.hpp"

#include "gpu.hpp"
#include "test_world.hpp"
#include "train/pipeline/staged_replica.hpp"

namespace hetseq::test {
namespace {

constexpr std::int64_t samples_of_update = 6, micro_batch = 2;
const ForwardContext second_update{Mode::train, 5, 1};

/// Counts how often so many numbers at once become numbers of 16 bits, on any thread.
class CastCounter {
public:
    explicit CastCounter(std::int64_t numel) {
        of = numel;
        found = 0;
        handle_ = at::addGlobalCallback(at::RecordFunctionCallback(look_at).needsInputs(true));
    }
    ~CastCounter() { at::removeCallback(handle_); }
    CastCounter(const CastCounter&) = delete;
    CastCounter& operator=(const CastCounter&) = delete;

    int casts() const { return found; }

private:
    static std::unique_ptr<at::ObserverContext> look_at(const at::RecordFunction& call) {
        if (std::string(call.name()) == "aten::_to_copy") {
            const at::Tensor& from = call.inputs()[0].toTensor();
            const auto type = call.inputs()[1].toOptional<at::ScalarType>();
            found +=
                from.is_cuda() && from.numel() == of && type && c10::isReducedFloatingType(*type);
        }
        return nullptr;
    }

    static inline std::atomic<std::int64_t> of;
    static inline std::atomic<int> found;
    at::CallbackHandle handle_ = 0;
};

struct KeptCase {
    const char* model;
    Precision precision;
    std::int64_t recomputed = 0;
};

void PrintTo(const KeptCase& one, std::ostream* out) {
    *out << one.model << to_string(one.precision);
}

class KeptCastsTest : public testing::TestWithParam<KeptCase> {
protected:
    void SetUp() override {
        HETSEQ_NEEDS_GPU();
        device_ =
            at::Device(discover_topology(world_, DeviceChoice::cuda).rank(world_.rank()).device);
        current_.reset_device(device_);
        staged_ = {.model = model_named(GetParam().model),
                   .precision = GetParam().precision,
                   .recomputed = GetParam().recomputed,
                   .device = device_};
        const auto stages = static_cast<std::size_t>(world_.size());
        if (stages > 1)
            staged_.units = all_cuts(staged_.chain_length(), stages).back();
        replica_ = std::make_unique<StagedReplica>(staged_, world_);
        share_.emplace(
            share_of(staged_.model, samples_of_update, micro_batch, make_device_transfer(device_)));
        share_->recut({.samples = micro_batch});  // and waits for the copies
        ASSERT_EQ(share_->micro_batches().size(), 3U);
    }

    // Gradients of the micro-batches, `at_once` of them in a pass.
    at::Tensor gradients(StagedReplica& replica, std::size_t at_once) {
        UpdateStatus status(replica.model().loss_terms().size(), device_);
        replica.parameters().zero_gradients();
        for (std::size_t begin = 0; begin < 3; begin += at_once)
            replica.pass().forward_backward({.share = *share_,
                                             .begin = begin,
                                             .end = begin + at_once,
                                             .weights = share_->weights(),
                                             .context = second_update,
                                             .reduces = false},
                                            replica.reducer(),
                                            status);
        return replica.parameters().gradients().cpu();
    }
    std::int64_t numel() const { return replica_->parameters().values().numel(); }

    HostComm world_{test::world()};
    at::Device device_ = at::kCPU;
    c10::OptionalDeviceGuard current_;
    StagedCase staged_;
    std::unique_ptr<StagedReplica> replica_;
    std::optional<LoadedShare> share_;
};

TEST_P(KeptCastsTest, AnUpdateOfThreeMicroBatchesConvertsOnce) {
    const CastCounter counter{numel()};

    gradients(*replica_, 3);

    EXPECT_EQ(counter.casts(), 1);
}

TEST_P(KeptCastsTest, AValidationConvertsOnceForEachShare) {
    const CastCounter counter{numel()};

    replica_->pass().forward(*share_, {Mode::evaluate, 5, 0}, [](auto&, auto&) {});

    EXPECT_EQ(counter.casts(), 1);
}

TEST_P(KeptCastsTest, GradientsHaveTheBitsOfMicroBatchesThatConvertByThemselves) {
    const at::Tensor one_by_one = gradients(*replica_, 1);

    const at::Tensor at_once = gradients(*replica_, 3);

    EXPECT_GT(one_by_one.abs().max().item<double>(), 0);
    EXPECT_TRUE(at_once.equal(one_by_one));
}

TEST_P(KeptCastsTest, TheNextUpdateConvertsTheValuesAsTheyAreThen) {
    const at::Tensor before = gradients(*replica_, 3);
    replica_->parameters().values().mul_(1.25);
    StagedReplica other(staged_, world_);
    other.parameters().values().mul_(1.25);

    const at::Tensor after = gradients(*replica_, 3);

    EXPECT_TRUE(after.equal(gradients(other, 3)));
    EXPECT_FALSE(after.equal(before));
}

INSTANTIATE_TEST_SUITE_P(Models,
                         KeptCastsTest,
                         testing::Values(KeptCase{"Bert", Precision::bf16},
                                         KeptCase{"TiedBert", Precision::fp16, 10},
                                         KeptCase{"Transformer", Precision::bf16}),
                         [](const auto& info) { return info.param.model; });

}  // namespace
}  // namespace hetseq::test
