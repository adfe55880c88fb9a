#include "hetseq/session/options/options.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/session/options/part_option_table.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::HasSubstr;

const OptionTable& all_options() {
    static const OptionTable table = option_table(builtin_parts());
    return table;
}

struct Given {
    const char* name;
    const char* value;
    const char* expected = "";
};

// Those that optimizers and schedules cannot work with, too.
TEST(OptionsTest, AValueThatCannotBeIsRefusedWithThoseThatCan) {
    for (const auto& [name, value, expected] :
         {Given{"adam-betas", "1,0.999", "'1' is not a number from 0 to below 1"},
          Given{"adam-betas", "0.9,1", "'1' is not a number from 0 to below 1"},
          Given{"adam-betas", "0.9,-0.1", "'-0.1' is not a number from 0 to 1"},
          Given{"momentum", "1", "'1' is not a number from 0 to below 1"},
          Given{"momentum", "1.5", "'1.5' is not a number from 0 to 1"},
          Given{"dropout", "1", "'1' is not a number from 0 to below 1"},
          Given{"rho", "1.5", "'1.5' is not a number from 0 to 1"},
          Given{"adadelta-eps", "0", "'0' is not a number above 0"},
          Given{"adam-eps", "-1", "'-1' is not a number from 0 up"},
          Given{"weight-decay", "-1", "'-1' is not a number from 0 up"},
          Given{"power", "0", "'0' is not a number above 0"},
          Given{"lr-shrink", "0", "'0' is not a number above 0"},
          Given{"staleness", "-1", "'-1' is not a whole number from 0 to 16"},
          Given{"staleness", "x", "'x' is not a whole number from 0 to 16"},
          Given{"shard", "all", "'all' is not one of none, optimizer"},
          Given{"precision", "half", "'half' is not one of auto, fp32, fp64"}}) {
        try {
            typed_options({{name, value}}, all_options());
            ADD_FAILURE() << "--" << name << ' ' << value << " was accepted";
        } catch (const BadConfig& error) {
            EXPECT_THAT(error.what(), HasSubstr("--" + std::string(name)));
            EXPECT_THAT(error.what(), HasSubstr(expected));
        }
    }
}

TEST(OptionsTest, TheEndsOfARangeAreAccepted) {
    for (const auto& [name, value, unused] : {Given{"adam-betas", "0,0.9999999"},
                                              Given{"momentum", "0"},
                                              Given{"rho", "1"},
                                              Given{"adam-eps", "0"},
                                              Given{"adadelta-eps", "1e-300"}})
        EXPECT_NO_THROW(typed_options({{name, value}}, all_options()))
            << "--" << name << ' ' << value;
}

}  // namespace
}  // namespace hetseq
