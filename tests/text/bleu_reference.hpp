#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace hetseq {

/// What sacreBLEU makes of random texts (tests/reference/bleu.py): bleu.json, or the file that
/// HETSEQ_BLEU_REFERENCE names.
const nlohmann::json& bleu_reference();

/// Hypotheses and lists of references, a text a segment.
struct ReferenceCorpus {
    std::vector<std::string> hypotheses;
    std::vector<std::vector<std::string>> references;

    static ReferenceCorpus from_json(const nlohmann::json& corpus);
    /// One segment's, of the first `count` lists.
    std::vector<std::string_view> references_of(std::size_t segment, std::size_t count) const;
};

/// The folder of the real translations, and whether it is there.
std::filesystem::path real_translations();

/// Those of one system and their reference, with what sacreBLEU makes of them.
struct RealTranslations {
    std::string system;
    ReferenceCorpus corpus;
    nlohmann::json expected;
};
std::vector<RealTranslations> read_real_translations();

}  // namespace hetseq
