#include "hetseq/text/scores/entities.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

double share_or_zero(std::int64_t part, std::int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

bool is_iob2_tag(std::string_view name) {
    return name == "O" || (name.size() > 2 && (name[0] == 'B' || name[0] == 'I') && name[1] == '-');
}

TagSet::TagSet(std::vector<std::string> names, const std::string& origin)
    : names_{std::move(names)} {
    if (names_.empty())
        throw BadData(origin + " holds no tag", "", "give tags such as O, B-Disease and I-Disease");
    std::map<std::string, std::int32_t> types;
    std::set<std::string> seen;
    for (const std::string& name : names_) {
        if (!is_iob2_tag(name))
            throw BadData(origin + ": '" + name + "' is no tag of IOB2",
                          "tags are O, B-TYPE and I-TYPE",
                          "convert the tags");
        if (!seen.insert(name).second)
            throw BadData(origin + ": the tag '" + name + "' stands there twice", "", "remove one");
        if (name == "O") {
            tags_.push_back({Prefix::outside, -1});
            continue;
        }
        const auto [type, is_new] =
            types.emplace(name.substr(2), static_cast<std::int32_t>(types_.size()));
        if (is_new)
            types_.push_back(type->first);
        tags_.push_back({name[0] == 'B' ? Prefix::begin : Prefix::inside, type->second});
    }
}

std::vector<Entity> TagSet::entities(std::span<const std::int32_t> tags, EntityMode mode) const {
    std::vector<Entity> found;
    bool is_open = false;  // the last entity reaches up to the word before
    std::int32_t type_before = -1;
    for (std::size_t i = 0; i < tags.size(); ++i) {
        const Tag& tag = tags_.at(static_cast<std::size_t>(tags[i]));
        const bool goes_on = is_open && tag.prefix == Prefix::inside && tag.type == type_before;
        const bool begins =
            tag.prefix == Prefix::begin ||
            (mode == EntityMode::lenient && tag.prefix == Prefix::inside && !goes_on);
        if (goes_on)
            found.back().end = i + 1;
        else if (begins)
            found.push_back({i, i + 1, tag.type});
        is_open = goes_on || begins;
        type_before = tag.type;
    }
    return found;
}

double EntityCounts::precision() const {
    return share_or_zero(correct, predicted);
}

double EntityCounts::recall() const {
    return share_or_zero(correct, expected);
}

double EntityCounts::f1() const {
    return share_or_zero(2 * correct, predicted + expected);
}

void count_entities(const TagSet& tags,
                    std::span<const std::int32_t> expected,
                    std::span<const std::int32_t> predicted,
                    EntityMode mode,
                    EntityCounts& counts) {
    HETSEQ_ASSERT(expected.size() == predicted.size());
    const std::vector<Entity> right = tags.entities(expected, mode);
    const std::vector<Entity> said = tags.entities(predicted, mode);
    counts.expected += std::ssize(right);
    counts.predicted += std::ssize(said);
    counts.correct += std::count_if(said.begin(), said.end(), [&](const Entity& entity) {
        return std::find(right.begin(), right.end(), entity) != right.end();
    });
}

}  // namespace hetseq
