#include "pair_encoder.hpp"

#include <algorithm>

namespace hetseq {

PairEncoder::PairEncoder(const IndexedPairs& pairs,
                         const TranslationVocabularies& vocabularies,
                         const PrepareTranslationOptions& options)
    : source_text_{pairs.sources},
      target_text_{pairs.targets},
      vocabularies_{vocabularies},
      max_length_{options.max_length},
      max_ratio_{options.max_ratio} {}

void PairEncoder::write(std::int64_t begin,
                        std::int64_t end,
                        RaggedShardWriter& shard,
                        PreparedSet& counts,
                        RankProgress& progress) {
    shard.attach("source_vocabulary", vocabularies_.source.bytes());
    if (vocabularies_.are_one())
        shard.attach_again("target_vocabulary", "source_vocabulary");
    else
        shard.attach("target_vocabulary", vocabularies_.target.bytes());
    if (begin == end)
        return;
    source_text_.move_to(begin);
    target_text_.move_to(begin);
    for (std::int64_t pair = begin; pair < end; ++pair) {
        const std::string_view source_line = source_text_.next();
        const std::string_view target_line = target_text_.next();
        source_.clear();
        target_.clear();
        vocabularies_.source.encode(source_line, source_);
        vocabularies_.target.encode(target_line, target_);
        ++counts.pairs;
        if (pair % pairs_between_reports == 0)
            progress.show(static_cast<double>(pair - begin));
        counts.source.text_bytes += std::ssize(source_line);
        counts.target.text_bytes += std::ssize(target_line);
        if (const auto reason = reason_to_drop()) {
            ++(counts.*reason);
            continue;
        }
        ++counts.written;
        count(counts.source, source_);
        count(counts.target, target_);
        source_.push_back(vocabularies_.source.end());
        target_.push_back(vocabularies_.target.end());
        shard.append(0, source_);
        shard.append(1, target_);
    }
    progress.add(static_cast<double>(end - begin));
}

std::int64_t PreparedSet::*PairEncoder::reason_to_drop() const {
    const std::int64_t shorter = std::min(std::ssize(source_), std::ssize(target_));
    const std::int64_t longer = std::max(std::ssize(source_), std::ssize(target_));
    if (source_.empty())
        return &PreparedSet::empty_source;
    if (target_.empty())
        return &PreparedSet::empty_target;
    if (max_length_ > 0 && longer > max_length_)
        return &PreparedSet::too_long;
    if (max_ratio_ > 0 && static_cast<double>(longer) > max_ratio_ * static_cast<double>(shorter))
        return &PreparedSet::unlike_lengths;
    return nullptr;
}

void PairEncoder::count(PreparedSide& side, const std::vector<std::int32_t>& ids) const {
    side.tokens += std::ssize(ids);
    side.unknown += std::count(ids.begin(), ids.end(), vocabularies_.source.unknown());
}

}  // namespace hetseq
