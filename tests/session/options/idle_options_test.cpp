#include "hetseq/session/options/idle_options.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Of a run with a folder, but for `values`.
std::vector<std::string> idle(OptionValues values) {
    values.emplace("save-dir", "runs/a");
    return idle_options(typed_options(values));
}

TEST(IdleOptionsTest, AreNoneByDefault) {
    EXPECT_THAT(idle({}), IsEmpty());
}

TEST(IdleOptionsTest, ValidationNeedsData) {
    EXPECT_THAT(idle({{"patience", "3"}, {"best-by", "accuracy:max"}}),
                ElementsAre("--patience 3 and --best-by accuracy:max have no effect (there are no "
                            "validation data): give --valid-data"));
    EXPECT_THAT(idle({{"patience", "3"}, {"valid-data", "v.h5"}}), IsEmpty());
}

TEST(IdleOptionsTest, StagesNeedAVirtualWorker) {
    EXPECT_THAT(idle({{"stage-units", "3+4"}}),
                ElementsAre("--stage-units 3+4 has no effect (ranks have whole replicas): give "
                            "--virtual-workers"));
    EXPECT_THAT(idle({{"stage-units", "3+4"}, {"virtual-workers", "0+1"}}), IsEmpty());
}

TEST(IdleOptionsTest, AnOptimizerOfOnesOwnDecaysItself) {
    EXPECT_THAT(idle({{"optimizer", "python"}, {"weight-decay", "0.1"}}),
                ElementsAre("--weight-decay 0.1 has no effect (the task makes its optimizer "
                            "itself): give it there"));
    EXPECT_THAT(idle({{"optimizer", "adamw"}, {"weight-decay", "0.1"}}), IsEmpty());
}

TEST(IdleOptionsTest, OneVirtualWorkerHasNoSharesToBalance) {
    EXPECT_THAT(idle({{"balance", "declared"}, {"virtual-workers", "0+1"}}),
                ElementsAre("--balance declared has no effect (the ranks of a virtual worker have "
                            "one share): leave it out"));
    EXPECT_THAT(idle({{"balance", "declared"}, {"virtual-workers", "0+1,2+3"}}), IsEmpty());
}

TEST(IdleOptionsTest, ASignalThatStopsTheRunDoesNotSaveAlone) {
    EXPECT_THAT(idle({{"checkpoint-signals", "USR2"}}),
                ElementsAre("SIGUSR2 in --checkpoint-signals has no effect (--stop-signals has it "
                            "too): give --stop-signals without it"));
    EXPECT_THAT(idle({{"checkpoint-signals", "USR2"}, {"stop-signals", "USR1"}}), IsEmpty());
}

TEST(IdleOptionsTest, WithoutAFolderNothingIsKept) {
    EXPECT_THAT(idle({{"save-dir", ""}}),
                ElementsAre(testing::HasSubstr("nothing of this run is kept")));
    EXPECT_THAT(idle({{"save-dir", ""}, {"dry-run", "true"}}), IsEmpty());
}

TEST(IdleOptionsTest, AScheduleMayNotLookAtAllOfItsOptions) {
    EXPECT_THAT(idle({{"warmup-init-lr", "0.1"}, {"total-num-update", "20"}}),
                ElementsAre("--warmup-init-lr 0.1 has no effect (there is no warm-up): give "
                            "--warmup-updates",
                            "--total-num-update 20 has no effect (--lr-scheduler fixed does not "
                            "end): give cosine or polynomial_decay, or leave it out"));
    EXPECT_THAT(idle({{"total-num-update", "20"}, {"lr-scheduler", "cosine"}}), IsEmpty());
}

}  // namespace
}  // namespace hetseq
