#include "hetseq/session/ranks/sharding.hpp"

#include <set>
#include <string>

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/session/run_settings.hpp"

#include "test_world.hpp"

namespace hetseq {
namespace {

// Three parameters of `elements` each, of which a rank holds those that are named.
class PartOfThree : public TensorRegistry {
public:
    PartOfThree(std::int64_t elements, const std::set<std::string>& held) {
        for (const char* name : {"a", "b", "c"})
            register_parameter(name, at::zeros({elements}));
        keep_only(held);
    }
};

FlatParameters part_of_model(std::int64_t elements, const std::set<std::string>& held) {
    return {PartOfThree{elements, held}, [](const std::string&) { return true; }};
}

RunSettings settings_of(const HostComm& world) {
    const OptionValues values{{"task", "mnist"}, {"device", "cpu"}};
    return set_up_ranks(
        world, settle_options(world, {values, {}}, builtin_parts()), builtin_parts());
}

TEST(BucketBytesTest, AreTheSameForUnlikePartsOfAModel) {
    const HostComm world = test::world();
    const RunSettings settings = settings_of(world);
    for (const std::int64_t elements : {100, 100'000, 1'500'000}) {
        const FlatParameters one = part_of_model(elements, {"a"});
        const FlatParameters two = part_of_model(elements, {"a", "b"});
        const FlatParameters all = part_of_model(elements, {"a", "b", "c"});

        const std::int64_t of_all = bucket_bytes(settings, all);

        EXPECT_EQ(bucket_bytes(settings, one), of_all);
        EXPECT_EQ(bucket_bytes(settings, two), of_all);
    }
}

}  // namespace
}  // namespace hetseq
