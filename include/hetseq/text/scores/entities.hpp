#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hetseq {

/// How tags become entities, as the Python package seqeval does it.
enum class EntityMode {
    lenient,  // its default, conlleval's rule: an I- that follows no entity of its type begins one
    strict    // its mode 'strict' with the scheme IOB2: an entity begins with B-
};

/// An entity: the words [begin, end) of a sentence, and its type.
struct Entity {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::int32_t type = 0;  // index into TagSet::types

    friend bool operator==(const Entity&, const Entity&) = default;
};

/// The tags of IOB2 ("O", "B-Disease", "I-Disease") by number. Cheap to use: names are parsed once.
class TagSet {
public:
    /// Throws BadData, naming `origin`, for a name that is no tag of IOB2 or appears twice, and
    /// where there is none.
    TagSet(std::vector<std::string> names, const std::string& origin);

    const std::vector<std::string>& names() const noexcept { return names_; }
    const std::vector<std::string>& types() const noexcept { return types_; }
    std::int32_t size() const noexcept { return static_cast<std::int32_t>(names_.size()); }

    /// The entities of a sentence, in order. Tags are numbers below `size()`.
    std::vector<Entity> entities(std::span<const std::int32_t> tags, EntityMode mode) const;

private:
    enum class Prefix { outside, begin, inside };
    struct Tag {
        Prefix prefix;
        std::int32_t type;  // -1: outside
    };

    std::vector<std::string> names_, types_;
    std::vector<Tag> tags_;
};

/// True for "O", "B-TYPE" and "I-TYPE".
bool is_iob2_tag(std::string_view name);

/// Counts of entities, which are summed over sentences.
struct EntityCounts {
    std::int64_t correct = 0;  // predicted with the right borders and type
    std::int64_t predicted = 0;
    std::int64_t expected = 0;

    double precision() const;  // 0 where nothing is predicted
    double recall() const;     // 0 where nothing is expected
    double f1() const;         // 0 where both are 0
};

/// Adds the entities of one sentence. `expected` and `predicted` are tags of as many words.
void count_entities(const TagSet& tags,
                    std::span<const std::int32_t> expected,
                    std::span<const std::int32_t> predicted,
                    EntityMode mode,
                    EntityCounts& counts);

}  // namespace hetseq
