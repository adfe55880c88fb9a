#include "pair_shard.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "hetseq/text/bert/tokenizer_config.hpp"
#include "hetseq/text/blank_line.hpp"
#include "hetseq/data/order/keyed_draws.hpp"
#include "hetseq/prepare/bert/masking_vocabulary.hpp"

#include "prepare/rank_progress.hpp"

namespace hetseq {

namespace {

// What is drawn by a shard's key.
enum class Purpose : std::uint64_t { pairs, masks, order };

std::uint64_t key_of(std::uint64_t seed, std::int64_t shard, Purpose purpose) {
    return mix_keys(mix_keys(seed, static_cast<std::uint64_t>(shard)),
                    static_cast<std::uint64_t>(purpose));
}

std::uint64_t key_of(std::uint64_t key, std::int64_t number) {
    return mix_keys(key, static_cast<std::uint64_t>(number));
}

// Takes lines one by one.
class DocumentReader {
public:
    DocumentReader(BertTokenizer& tokenizer, PreparedBertSet& counts)
        : tokenizer_{tokenizer}, unknown_{tokenizer.pieces().unknown_id()}, counts_{counts} {}

    void add_line(std::string_view line) {
        const std::span<const std::int32_t> ids = tokenizer_.encode(line);
        if (ids.empty() && is_blank_line(line)) {
            end_document();
            return;
        }
        has_text_ = true;
        counts_.sentences += ids.empty() ? 0 : 1;
        counts_.tokens += std::ssize(ids);
        counts_.unknown += std::count(ids.begin(), ids.end(), unknown_);
        documents_.add_sentence(ids);
    }

    void end_document() {
        if (!has_text_)
            return;
        has_text_ = false;
        ++counts_.documents;
        counts_.dropped_documents += documents_.end_document() ? 0 : 1;
    }

    TokenDocuments take() { return std::move(documents_); }

private:
    BertTokenizer& tokenizer_;
    std::int32_t unknown_;
    PreparedBertSet& counts_;
    TokenDocuments documents_;
    bool has_text_ = false;  // the document that is not ended yet
};

// The first lines of the files, all of them counted together.
std::vector<std::int64_t> first_lines(std::span<const TextIndex> texts) {
    std::vector<std::int64_t> lines;
    std::int64_t before = 0;
    for (const TextIndex& text : texts) {
        lines.push_back(before);
        before += text.lines;
    }
    return lines;
}

TokenDocuments read_documents(std::span<const TextIndex> texts,
                              const IndexRange& lines,
                              TextCursor& cursor,
                              DocumentReader reader) {
    const std::vector<std::int64_t> firsts = first_lines(texts);
    cursor.move_to(lines.begin);
    for (std::int64_t line = lines.begin; line < lines.end; ++line) {
        if (std::binary_search(firsts.begin(), firsts.end(), line))
            reader.end_document();
        reader.add_line(cursor.next());
    }
    reader.end_document();
    return reader.take();
}

std::vector<SentencePair> make_pairs(const TokenDocuments& documents,
                                     const PrepareBertOptions& options,
                                     std::uint64_t key,
                                     PreparedBertSet& counts) {
    const SentencePairOptions wanted{.most_tokens = options.seq_length - special_tokens_of_pair,
                                     .short_pair_prob = options.short_pair_prob};
    std::vector<SentencePair> pairs;
    SentencePairCounts found;
    for (std::int64_t copy = 0; copy < options.copies; ++copy)
        for (std::int64_t document = 0; document < documents.size(); ++document) {
            KeyedDraws draws{key_of(key_of(key, copy), document)};
            append_sentence_pairs(documents, document, wanted, draws, pairs, found);
        }
    counts.pairs += std::ssize(pairs);
    counts.random_next += found.random_next;
    counts.random_next_of_own_document += found.random_next_of_own_document;
    counts.cut_pairs += found.cut_pairs;
    counts.cut_tokens += found.cut_tokens;
    return pairs;
}

// The row of one pair, with memory that is used again.
struct PairRow {
    explicit PairRow(const WordPiece& pieces)
        : begin{pieces.id_of("[CLS]")}, separator{pieces.id_of("[SEP]")} {}

    void assemble(const TokenDocuments& documents, const SentencePair& pair) {
        const auto append = [&](const IndexRange& range) {
            const std::span<const std::int32_t> ids = documents.tokens(range);
            tokens.insert(tokens.end(), ids.begin(), ids.end());
            tokens.push_back(separator);
        };
        tokens.assign(1, begin);
        append(pair.first);
        segments.assign(tokens.size(), 0);
        append(pair.second);
        segments.resize(tokens.size(), 1);
        mask.assign(tokens.size(), 1);
        second_ = std::ssize(tokens) - pair.second.size() - 1;
    }

    // Where the second segment begins.
    std::int64_t second() const { return second_; }

    std::int32_t begin, separator;
    std::vector<std::int32_t> tokens, mask, segments;

private:
    std::int64_t second_ = 0;
};

// In the order of NVIDIA's datasets.
std::vector<FixedShardWriter::Field> masked_fields(const PrepareBertOptions& options) {
    const std::int64_t predictions = options.masking.most_predictions;
    return {{"input_ids", 4, options.seq_length},
            {"input_mask", 1, options.seq_length},
            {"segment_ids", 1, options.seq_length},
            {"masked_lm_positions", 4, predictions},
            {"masked_lm_ids", 4, predictions},
            {"next_sentence_labels", 1, 0}};
}

}  // namespace

PairShardMaker::PairShardMaker(std::span<const TextIndex> texts,
                               const WordPiece& pieces,
                               const PrepareBertOptions& options)
    : texts_{texts},
      cursor_{texts},
      tokenizer_{pieces, {.basic = options.text}},
      options_{options},
      masker_{masking_vocabulary(pieces), options.masking} {}

PairShardMaker::Pairs PairShardMaker::read_pairs(const ShardLines& from, PreparedBertSet& counts) {
    const auto key = [&](Purpose purpose) { return key_of(options_.seed, from.shard, purpose); };
    TokenDocuments documents =
        read_documents(texts_, from.lines, cursor_, DocumentReader{tokenizer_, counts});
    std::vector<SentencePair> pairs = make_pairs(documents, options_, key(Purpose::pairs), counts);
    const std::int64_t count = std::max<std::int64_t>(std::ssize(pairs), 1);
    return {std::move(documents),
            std::move(pairs),
            KeyedPermutation{count, key(Purpose::order)},
            key(Purpose::masks)};
}

template <class Writer>
void PairShardMaker::attach_texts(Writer& writer) const {
    writer.attach_text(bert_vocabulary_name, tokenizer_.pieces().lines());
    writer.attach_text(bert_tokenizer_name, tokenizer_config_json(options_.text));
}

FixedShardWriter PairShardMaker::write_masked(const std::filesystem::path& path,
                                              const Pairs& made,
                                              PreparedBertSet& counts,
                                              const std::function<void(double)>& progress) {
    const std::int64_t count = std::ssize(made.pairs);
    FixedShardWriter writer{path, count, masked_fields(options_)};
    attach_texts(writer);
    PairRow row{tokenizer_.pieces()};
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t chosen = made.order(i);
        const SentencePair& pair = made.pairs[static_cast<std::size_t>(chosen)];
        row.assemble(made.documents, pair);
        KeyedDraws draws{key_of(made.mask_key, chosen)};
        masker_.mask(row.tokens, draws, counts.predictions);
        const std::int32_t label = pair.is_random_next ? 1 : 0;
        writer.append(0, row.tokens);
        writer.append(1, row.mask);
        writer.append(2, row.segments);
        writer.append(3, masker_.positions());
        writer.append(4, masker_.labels());
        writer.append(5, {&label, 1});
        counts.pair_tokens += std::ssize(row.tokens);
        counts.places += options_.seq_length;
        if (i % pairs_between_reports == 0)
            progress(static_cast<double>(i) / static_cast<double>(count));
    }
    counts.shard_bytes += writer.finish();
    return writer;
}

RaggedShardWriter PairShardMaker::write_unmasked(const std::filesystem::path& path,
                                                 const Pairs& made,
                                                 PreparedBertSet& counts,
                                                 const std::function<void(double)>& progress) {
    const std::int64_t count = std::ssize(made.pairs);
    RaggedShardWriter writer{path,
                             {{"input_ids", tokenizer_.pieces().size()},
                              {"second_segments", options_.seq_length, false},
                              {"next_sentence_labels", 2, false}},
                             ShardFormat::large_attributes};
    attach_texts(writer);
    PairRow row{tokenizer_.pieces()};
    for (std::int64_t i = 0; i < count; ++i) {
        const SentencePair& pair = made.pairs[static_cast<std::size_t>(made.order(i))];
        row.assemble(made.documents, pair);
        const auto second = static_cast<std::int32_t>(row.second());
        const std::int32_t label = pair.is_random_next ? 1 : 0;
        writer.append(0, row.tokens);
        writer.append(1, {&second, 1});
        writer.append(2, {&label, 1});
        counts.pair_tokens += std::ssize(row.tokens);
        counts.places += std::ssize(row.tokens);
        if (i % pairs_between_reports == 0)
            progress(static_cast<double>(i) / static_cast<double>(count));
    }
    counts.shard_bytes += writer.finish();
    return writer;
}

PairShard PairShardMaker::make(const std::filesystem::path& path,
                               const ShardLines& from,
                               PreparedBertSet& counts,
                               const std::function<void(double)>& progress) {
    const Pairs made = read_pairs(from, counts);
    if (options_.masks == PrepareBertOptions::Masks::in_shards)
        return write_masked(path, made, counts, progress);
    return write_unmasked(path, made, counts, progress);
}

}  // namespace hetseq
