#include "hetseq/prepare/prepare_numbers.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/text/number_names.hpp"
#include "hetseq/data/files/shard_names.hpp"
#include "hetseq/data/order/keyed_draws.hpp"

namespace hetseq {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_number_digits = 7;
constexpr std::int64_t least_unseen = 1000;  // each smaller number may be needed to learn from
constexpr std::int64_t ids_of_numbers = 240;
constexpr std::int64_t most_samples = 10'000'000;

// The more digits the likelier, since short names are soon learnt: d of 7 with (2 d - 1) / 49.
std::int64_t draw_number(KeyedDraws& draws) {
    const std::int64_t digits =
        1 + std::max(draws.below(most_number_digits), draws.below(most_number_digits));
    std::int64_t behind = 1;  // the least number with more digits
    for (std::int64_t digit = 0; digit < digits; ++digit)
        behind *= 10;
    const std::int64_t least = digits == 1 ? 0 : behind / 10;
    return least + draws.below(behind - least);
}

struct NumberSets {
    std::vector<std::int64_t> train, valid, test;
};

NumberSets draw_sets(const PrepareNumbersOptions& options) {
    KeyedDraws draws{mix_keys(options.seed, 0)};
    NumberSets sets;
    std::set<std::int64_t> unseen;
    while (std::ssize(unseen) < valid_numbers + test_numbers) {
        const std::int64_t number = draw_number(draws);
        if (number < least_unseen || !unseen.insert(number).second)
            continue;
        (std::ssize(sets.test) < test_numbers ? sets.test : sets.valid).push_back(number);
    }
    while (std::ssize(sets.train) < options.samples) {
        const std::int64_t number = draw_number(draws);
        if (!unseen.contains(number))
            sets.train.push_back(number);
    }
    return sets;
}

void write_texts(const fs::path& stem, const std::vector<std::int64_t>& numbers) {
    AtomicFile english{stem.string() + ".en"};
    AtomicFile german{stem.string() + ".de"};
    for (const std::int64_t number : numbers) {
        english.write(english_number(number) + "\n");
        german.write(german_number(number) + "\n");
    }
    english.commit();
    german.commit();
}

// Somebody's own text may have such a name.
void check_no_texts(const fs::path& folder) {
    for (const char* name : {"train.en", "train.de", "valid.en", "valid.de", "test.en", "test.de"})
        if (fs::exists(folder / name))
            throw BadConfig((folder / name).string() + " exists",
                            "a text of that name is written",
                            "choose another --output, or give --overwrite to replace it");
}

void write_all_texts(const PrepareNumbersOptions& options) {
    const fs::path folder{options.output};
    prepare_shard_folder(options.output, options.overwrite);
    if (!options.overwrite)
        check_no_texts(folder);
    const NumberSets sets = draw_sets(options);
    write_texts(folder / "train", sets.train);
    write_texts(folder / "valid", sets.valid);
    write_texts(folder / "test", sets.test);
}

}  // namespace

PreparedTranslation prepare_numbers(const HostComm& world, const PrepareNumbersOptions& options) {
    agree_on(world, [&] {
        if (options.samples < 1 || options.samples > most_samples)
            throw BadConfig("--samples " + std::to_string(options.samples), "", "give 1 or more");
        if (world.rank() == 0)
            write_all_texts(options);
    });
    const auto text = [&](const std::string& name) {
        return std::vector<std::string>{(fs::path(options.output) / name).string()};
    };
    return prepare_translation(world,
                               {.train = {text("train.en"), text("train.de")},
                                .valid = {text("valid.en"), text("valid.de")},
                                .output = options.output,
                                .subwords = {.vocab_size = ids_of_numbers},
                                .joined = true,
                                .seed = options.seed,
                                .overwrite = options.overwrite});
}

}  // namespace hetseq
