#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/text/bert/bert_tokenizer.hpp"
#include "hetseq/text/blank_line.hpp"
#include "hetseq/prepare/bert/token_masking.hpp"

#include "prepare/bert/sentence_pairs.hpp"
#include <nlohmann/json.hpp>

// The statistics of tests/reference/bert_pairs.json, which a Python program computed by the
// published algorithm, and ours of the same text.

namespace hetseq {
namespace {

namespace fs = std::filesystem;

using Statistics = std::map<std::string, double>;

const nlohmann::json& reference() {
    static const nlohmann::json json =
        nlohmann::json::parse(std::ifstream{"tests/reference/bert_pairs.json"});
    return json;
}

struct Text {
    TokenDocuments documents;
    MaskingVocabulary vocabulary;
};

// Ids from 4 on, in turn.
Text generated_text() {
    Text text;
    const auto size = reference()["vocabulary"].get<std::int32_t>();
    std::int32_t token = 0;
    for (const auto& document : reference()["documents"]) {
        for (const std::int32_t length : document) {
            std::vector<std::int32_t> sentence;
            for (std::int32_t i = 0; i < length; ++i)
                sentence.push_back(4 + token++ % (size - 4));
            text.documents.add_sentence(sentence);
        }
        text.documents.end_document();
    }
    text.vocabulary = {.size = size, .mask = 3, .begin = 1, .separator = 2};
    for (std::int32_t id = 0; id < size; ++id)
        text.vocabulary.continues.push_back(id % 3 == 2);
    return text;
}

fs::path test_data() {
    const char* folder = std::getenv("HETSEQ_TEST_DATA");
    return folder != nullptr ? folder : "../shared/data";
}

Text novels() {
    Text text;
    const WordPiece pieces = WordPiece::read(test_data() / "bert/vocab.txt");
    BertTokenizer tokenizer{pieces};
    std::ifstream file{test_data() / "text/novels-small.txt"};
    for (std::string line; std::getline(file, line);) {
        text.documents.add_sentence(tokenizer.encode(line));
        if (is_blank_line(line))
            text.documents.end_document();
    }
    text.documents.end_document();
    text.vocabulary = {.size = pieces.size(),
                       .mask = pieces.id_of("[MASK]"),
                       .begin = pieces.id_of("[CLS]"),
                       .separator = pieces.id_of("[SEP]")};
    for (std::int32_t id = 0; id < pieces.size(); ++id)
        text.vocabulary.continues.push_back(pieces.continues_word(id));
    return text;
}

// The document that a segment comes from.
std::int64_t document_of(const TokenDocuments& documents, const IndexRange& segment) {
    std::int64_t document = 0;
    while (documents.begin_of(documents.sentences_of(document).end) <= segment.begin)
        ++document;
    return document;
}

// The sums of one run become means at its end.
class Run {
public:
    Run(const Text& text, const nlohmann::json& setting, std::uint64_t seed)
        : text_{text},
          length_{setting["seq_length"].get<std::int64_t>()},
          most_predictions_{setting["max_predictions"].get<std::int64_t>()},
          masker_{text.vocabulary,
                  {.prob = reference()["masked"].get<double>(),
                   .most_predictions = most_predictions_,
                   .whole_words = setting["whole_words"].get<bool>()}} {
        SentencePairCounts counts;
        for (std::int64_t document = 0; document < text.documents.size(); ++document) {
            KeyedDraws draws{mix_keys(seed, static_cast<std::uint64_t>(document))};
            std::vector<SentencePair> pairs;
            append_sentence_pairs(
                text.documents,
                document,
                {.most_tokens = length_ - 3, .short_pair_prob = reference()["short"].get<double>()},
                draws,
                pairs,
                counts);
            for (const SentencePair& pair : pairs)
                add(pair, draws);
        }
        finish(counts);
    }

    const Statistics& statistics() const { return sums_; }

private:
    void add(const SentencePair& pair, KeyedDraws& draws) {
        const TokenDocuments& documents = text_.documents;
        std::vector<std::int32_t> tokens{text_.vocabulary.begin};
        for (const IndexRange& segment : {pair.first, pair.second}) {
            const auto ids = documents.tokens(segment);
            tokens.insert(tokens.end(), ids.begin(), ids.end());
            tokens.push_back(text_.vocabulary.separator);
        }
        const auto count = std::ssize(tokens);
        ++pairs_;
        sums_["tokens"] += static_cast<double>(count);
        sums_["first"] += static_cast<double>(pair.first.size());
        const std::int64_t bins = reference()["bins"];
        sums_["length " + std::to_string((count - 1) * bins / length_)] += 1;
        if (pair.is_random_next) {
            const std::int64_t source = document_of(documents, pair.second);
            sums_["second of random"] += static_cast<double>(pair.second.size());
            sums_["source document"] +=
                static_cast<double>(source) / static_cast<double>(documents.size());
        }
        masker_.mask(tokens, draws, masks_);
        sums_["most predictions"] += std::ssize(masker_.positions()) == most_predictions_ ? 1 : 0;
        for (std::size_t i = 0; i < masker_.positions().size(); ++i) {
            sums_["position"] +=
                static_cast<double>(masker_.positions()[i]) / static_cast<double>(count);
            const auto label = static_cast<std::size_t>(masker_.labels()[i]);
            sums_["continuing"] += text_.vocabulary.continues[label] ? 1 : 0;
        }
    }

    void finish(const SentencePairCounts& counts) {
        const auto chosen = static_cast<double>(masks_.masked + masks_.kept + masks_.replaced);
        const auto random = static_cast<double>(counts.random_next);
        sums_["random next"] = random;
        sums_["cut pairs"] = static_cast<double>(counts.cut_pairs);
        sums_["cut tokens"] = static_cast<double>(counts.cut_tokens);
        sums_["predictions"] = chosen;
        for (auto& [name, sum] : sums_) {
            const bool of_random = name == "second of random" || name == "source document";
            const bool of_chosen = name == "position" || name == "continuing";
            sum /= of_random ? random : of_chosen ? chosen : pairs_;
        }
        sums_["pairs"] = pairs_;
        sums_["masked"] = static_cast<double>(masks_.masked) / chosen;
        sums_["kept"] = static_cast<double>(masks_.kept) / chosen;
        sums_["replaced"] = static_cast<double>(masks_.replaced) / chosen;
        sums_["own document"] = static_cast<double>(counts.random_next_of_own_document) / random;
    }

    const Text& text_;
    std::int64_t length_;
    std::int64_t most_predictions_;
    TokenMasker masker_;
    MaskingCounts masks_;
    double pairs_ = 0;
    Statistics sums_;
};

// The means of our runs lie within 4.5 standard errors of the reference's.
void expect_like_reference(const Text& text, const std::string& setting_name, int runs) {
    const nlohmann::json& setting = reference()["settings"][setting_name];
    Statistics means;
    for (int i = 0; i < runs; ++i) {
        const Run run{text, setting, static_cast<std::uint64_t>(i)};
        for (const auto& [name, value] : run.statistics())
            means[name] += value / runs;
    }
    int compared = 0;
    for (const auto& [name, expected] : setting["statistics"].items()) {
        const double mean = expected[0], deviation = expected[1];
        const double error =
            deviation * std::sqrt(1.0 / runs + 1.0 / setting["runs"].get<double>());
        EXPECT_NEAR(means[name], mean, 4.5 * error + 1e-12) << setting_name << ": " << name;
        ++compared;
    }
    EXPECT_GE(compared, 20);
}

TEST(PairStatisticsTest, AreTheReferencesOfGeneratedText) {
    expect_like_reference(generated_text(), "generated", 300);
}

TEST(PairStatisticsTest, AreTheReferencesWithWholeWords) {
    expect_like_reference(generated_text(), "whole words", 300);
}

TEST(PairStatisticsTest, AreTheReferencesOfNovels) {
    if (!fs::exists(test_data() / "text/novels-small.txt"))
        GTEST_SKIP() << "the novels are not in HETSEQ_TEST_DATA, " << test_data();
    expect_like_reference(novels(), "novels", 20);
}

}  // namespace
}  // namespace hetseq
