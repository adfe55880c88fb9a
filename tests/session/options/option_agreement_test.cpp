#include "hetseq/session/options/option_agreement.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/session/options/merged_values.hpp"

#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

OptionValues mnist_values() {
    return merged_values({{{"task", "mnist"}}, {}}, builtin_parts());
}

class OptionAgreementTest : public testing::Test {
protected:
    // "" where the ranks agree; the same on all ranks.
    std::string error_of(const OptionValues& values) const {
        std::string text;
        try {
            agree_on_options(world_, values);
        } catch (const AgreedError& error) {
            EXPECT_EQ(error.code(), ExitCode::config);
            text = error.what();
        }
        for (const std::string& other : world_.all_gather(text))
            EXPECT_EQ(other, text);
        return text;
    }
    // The error for values that differ in one option, on the last rank.
    std::string error_of(const std::string& option, const std::string& value) const {
        OptionValues values = mnist_values();
        if (is_last())
            values.at(option) = value;
        return error_of(values);
    }
    bool is_last() const { return world_.rank() == world_.size() - 1; }

    HostComm world_ = test::world();
};

TEST_F(OptionAgreementTest, EqualValuesAreGood) {
    EXPECT_EQ(error_of(mnist_values()), "");
}

// Some names end as others do: lr and warmup-init-lr, data and valid-data, model and init-model,
// dropout and attention-dropout. Each is noticed, and no other is blamed.
TEST_F(OptionAgreementTest, EachOptionOfTheJobIsNoticedWhenItAloneDiffers) {
    const OptionValues common = mnist_values();
    for (const OptionSpec& spec : option_table()) {
        if (spec.scope == OptionScope::rank)
            continue;

        const std::string error = error_of(spec.name, "other");

        if (world_.size() == 1) {
            EXPECT_EQ(error, "") << spec.name;
            continue;
        }
        EXPECT_THAT(error, StartsWith("--" + spec.name + " differs over ranks"));
        EXPECT_THAT(error,
                    HasSubstr("here it is 'other', on rank 0 '" + common.at(spec.name) + "'"));
        EXPECT_THAT(error, HasSubstr("[rank " + std::to_string(world_.size() - 1) + " on "));
    }
}

TEST_F(OptionAgreementTest, AValueThatOnlyOneRankHasIsNoticed) {
    const std::string error = error_of("valid-data", "");
    EXPECT_EQ(error, "");  // nobody has one

    OptionValues values = mnist_values();
    values.at("data") = "train.h5";
    values.at("valid-data") = is_last() ? "" : "valid.h5";
    const std::string missing = error_of(values);

    if (world_.size() > 1) {
        EXPECT_THAT(missing, StartsWith("--valid-data differs over ranks"));
        EXPECT_THAT(missing, HasSubstr("here it is '', on rank 0 'valid.h5'"));
    }
}

// "x" and "" against "" and "x": the same texts in another place.
TEST_F(OptionAgreementTest, AValueUnderTheNeighboursNameIsNoticed) {
    OptionValues values = mnist_values();
    values.at(is_last() ? "dropout" : "attention-dropout") = "0.3";

    const std::string error = error_of(values);

    if (world_.size() > 1) {
        EXPECT_THAT(error, StartsWith("--dropout differs over ranks"));
    }
}

TEST_F(OptionAgreementTest, OptionsOfARankMayDiffer) {
    OptionValues values = mnist_values();
    int count = 0;
    for (const OptionSpec& spec : option_table())
        if (spec.scope == OptionScope::rank) {
            values.at(spec.name) = std::to_string(world_.rank());
            ++count;
        }

    EXPECT_EQ(error_of(values), "");
    // cache-dir, cache-mb, device, max-sentences, max-tokens, precision, recompute, shard-by,
    // threads
    EXPECT_EQ(count, 9);
}

}  // namespace
}  // namespace hetseq
