#include "hetseq/session/replica.hpp"

#include <gtest/gtest.h>

#include "hetseq/comm/host_comm.hpp"

#include "model/mixed_model.hpp"
#include "test_world.hpp"

namespace hetseq {
namespace {

struct SelfInitialised : test::MixedModel {
    bool initialises_itself() const override { return true; }
};

template <class SomeModel>
std::shared_ptr<Model> built() {
    const HostComm world = test::world();
    Parts parts = builtin_parts();
    parts.models.add("mine", [](const PartOptions&) { return std::make_shared<SomeModel>(); });
    const OptionValues values{
        {"task", "mnist"}, {"model", "mine"}, {"device", "cpu"}, {"max-sentences", "4"}};
    return build_model(
        world, set_up_ranks(world, settle_options(world, {values, {}}, parts), parts), parts);
}

TEST(ReplicaTest, AModelThatInitialisesItselfKeepsItsValues) {
    EXPECT_TRUE(test::stored_alike(*built<SelfInitialised>(), SelfInitialised()));
    EXPECT_FALSE(test::stored_alike(*built<test::MixedModel>(), test::MixedModel()));
}

}  // namespace
}  // namespace hetseq
