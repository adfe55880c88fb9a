#include "hetseq/data/schema.hpp"

#include <algorithm>
#include <set>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

bool is_ragged_field(const CorpusSchema& schema, const std::string& name) {
    const auto field = find_field(schema, name);
    return field && schema.fields[*field].is_ragged;
}

}  // namespace

std::string offsets_name(const std::string& name) {
    return name + "_offsets";
}

LocatedData locate(const HostComm& world, const std::string& name, const CorpusSchema& schema) {
    return schema.locate ? schema.locate(world, name) : LocatedData{.files = name};
}

std::vector<std::size_t> ragged_fields(const CorpusSchema& schema) {
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < schema.fields.size(); ++i) {
        if (schema.fields[i].is_ragged)
            indices.push_back(i);
    }
    return indices;
}

std::vector<std::size_t> length_fields(const CorpusSchema& schema) {
    std::vector<std::size_t> indices = ragged_fields(schema);
    std::erase_if(indices, [&](std::size_t i) { return !schema.fields[i].sets_lengths; });
    return indices;
}

std::optional<std::size_t> find_field(const CorpusSchema& schema, const std::string& name) {
    const auto found = std::find_if(schema.fields.begin(),
                                    schema.fields.end(),
                                    [&](const FieldSchema& field) { return field.name == name; });
    if (found == schema.fields.end())
        return std::nullopt;
    return static_cast<std::size_t>(found - schema.fields.begin());
}

void check_ragged_fields(const CorpusSchema& schema) {
    std::set<std::string> datasets;
    for (const FieldSchema& field : schema.fields) {
        const bool is_new = datasets.insert(field.name).second &&
                            (!field.is_ragged || datasets.insert(offsets_name(field.name)).second);
        HETSEQ_ASSERT(is_new);
        HETSEQ_ASSERT(!field.is_ragged || (field.rank == 1 && field.row_shape.empty()));
        HETSEQ_ASSERT(field.position_values >= 1);
        HETSEQ_ASSERT(field.same_row_shape_as.empty() ||
                      is_ragged_field(schema, field.same_row_shape_as) == field.is_ragged);
    }
    HETSEQ_ASSERT(schema.units_field.empty() || is_ragged_field(schema, schema.units_field));
}

}  // namespace hetseq
