#include "prepare_bert.hpp"

#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "hetseq/util/json.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"

#include "app/commands/table_cells.hpp"
#include "preparation_progress.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

double share_of(std::int64_t part, std::int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Shares of a set that is written.
struct Rates {
    explicit Rates(const PreparedBertSet& set)
        : predictions{set.predictions.masked + set.predictions.kept + set.predictions.replaced},
          masked{share_of(predictions, set.pair_tokens)},
          as_mask{share_of(set.predictions.masked, predictions)},
          as_random{share_of(set.predictions.replaced, predictions)},
          as_before{share_of(set.predictions.kept, predictions)},
          random_next{share_of(set.random_next, set.pairs)},
          padding{1 - share_of(set.pair_tokens, set.places)},
          unknown{share_of(set.unknown, set.tokens)} {}

    std::int64_t predictions;
    double masked;                         // of the pairs' tokens
    double as_mask, as_random, as_before;  // of the predictions
    double random_next;
    double padding;
    double unknown;
};

double megabytes_per_second(const PreparedBert& prepared) {
    double bytes = 0;
    for (const PreparedBertSet& set : prepared.sets)
        bytes += static_cast<double>(set.text_bytes);
    return bytes / 1e6 / prepared.seconds;
}

void warn_of_lonely_documents(const PreparedBert& prepared) {
    for (const PreparedBertSet& set : prepared.sets)
        if (set.random_next_of_own_document > 0)
            log::warn(whole(set.random_next_of_own_document) + " random next sentences of " +
                      set.name + " come from their own document: its shard has no other one (" +
                      count_text(set.documents, "document") + ", " +
                      count_text(set.shards, "shard") +
                      "). Blank lines divide documents; --shards makes fewer shards");
}

}  // namespace

OptionsOf<BertPreparation> bert_preparation_options() {
    return OptionsOf<BertPreparation>()
        .add(&BertPreparation::data, prepare_bert_options())
        .add(&BertPreparation::json, json_option());
}

std::string prepared_bert_text(const PreparedBert& prepared) {
    using Rows = std::vector<std::vector<std::string>>;
    Rows texts{{"set", "MB of text", "documents", "dropped", "sentences", "tokens", "unknown"}};
    Rows pairs{{"set", "pairs", "random next", "cut", "tokens cut", "padding", "shards", "MB"}};
    Rows masks{{"set", "predictions", "of tokens", "in a pair", "[MASK]", "random", "kept"}};
    for (const PreparedBertSet& set : prepared.sets) {
        const Rates rates{set};
        texts.push_back({set.name,
                         megabytes(set.text_bytes),
                         whole(set.documents),
                         whole(set.dropped_documents),
                         whole(set.sentences),
                         whole(set.tokens),
                         percent_text(rates.unknown)});
        pairs.push_back({set.name,
                         whole(set.pairs),
                         percent_text(rates.random_next),
                         whole(set.cut_pairs),
                         whole(set.cut_tokens),
                         percent_text(rates.padding),
                         whole(set.shards),
                         megabytes(set.shard_bytes)});
        masks.push_back({set.name,
                         whole(rates.predictions),
                         percent_text(rates.masked),
                         format_number(share_of(rates.predictions, set.pairs)),
                         percent_text(rates.as_mask),
                         percent_text(rates.as_random),
                         percent_text(rates.as_before)});
    }
    return format_table(texts) + "\n" + format_table(pairs) + "\n" + format_table(masks) + "\n" +
           count_text(prepared.vocabulary, "piece") + " in the vocabulary; " +
           format_number(prepared.seconds, 3) +
           " s: " + format_number(megabytes_per_second(prepared), 3) + " MB/s of text\n";
}

std::string prepared_bert_json(const PreparedBert& prepared) {
    nlohmann::ordered_json json{{"vocabulary", prepared.vocabulary},
                                {"seconds", prepared.seconds},
                                {"megabytes_per_second", megabytes_per_second(prepared)}};
    for (const PreparedBertSet& set : prepared.sets) {
        const Rates rates{set};
        json["sets"][set.name] = {{"text_bytes", set.text_bytes},
                                  {"documents", set.documents},
                                  {"documents_dropped", set.dropped_documents},
                                  {"sentences", set.sentences},
                                  {"tokens", set.tokens},
                                  {"unknown", set.unknown},
                                  {"pairs", set.pairs},
                                  {"pair_tokens", set.pair_tokens},
                                  {"padding", rates.padding},
                                  {"random_next", set.random_next},
                                  {"random_next_rate", rates.random_next},
                                  {"random_next_of_own_document", set.random_next_of_own_document},
                                  {"cut_pairs", set.cut_pairs},
                                  {"cut_tokens", set.cut_tokens},
                                  {"predictions", rates.predictions},
                                  {"mask_rate", rates.masked},
                                  {"masked", set.predictions.masked},
                                  {"replaced", set.predictions.replaced},
                                  {"kept", set.predictions.kept},
                                  {"shards", set.shards},
                                  {"shard_bytes", set.shard_bytes}};
    }
    return json_text(json, 2) + "\n";
}

void prepare_bert_of(const CommandContext& context) {
    PrepareBertOptions options =
        agree_on(context.world, [&] { return context.words.read(prepare_bert_options()); });
    PreparedBert prepared;
    {
        PreparationProgress progress;
        options.progress = [&](std::int64_t done, std::int64_t total) {
            progress.show(done, total);
        };
        prepared = prepare_bert(context.world, options);
    }
    if (context.world.rank() != 0)
        return;
    warn_of_lonely_documents(prepared);
    const bool as_json = context.words.read(bert_preparation_options()).json;
    std::fputs((as_json ? prepared_bert_json : prepared_bert_text)(prepared).c_str(), stdout);
}

}  // namespace hetseq
