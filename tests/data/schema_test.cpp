#include "hetseq/data/schema.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

namespace hetseq {
namespace {

CorpusSchema schema_of(std::vector<FieldSchema> fields, const std::string& units_field = "") {
    return {.kind = "test", .fields = std::move(fields), .units_field = units_field};
}

TEST(SchemaTest, RaggedFieldsStandInTheSchemasOrder) {
    const CorpusSchema schema = schema_of(
        {{.name = "a", .is_ragged = true}, {.name = "b"}, {.name = "c", .is_ragged = true}});

    EXPECT_EQ(ragged_fields(schema), (std::vector<std::size_t>{0, 2}));
    EXPECT_EQ(offsets_name("a"), "a_offsets");
    EXPECT_EQ(find_field(schema, "c"), 2U);
    EXPECT_FALSE(find_field(schema, "d").has_value());
    EXPECT_NO_THROW(check_ragged_fields(schema));
}

TEST(SchemaTest, RaggedFieldsThatContradictThemselvesAreOurMistake) {
    const FieldSchema ragged{.name = "r", .is_ragged = true};
    const FieldSchema fixed{.name = "f"};
    for (const CorpusSchema& schema :
         {schema_of({{.name = "a", .rank = 2, .is_ragged = true}}),
          schema_of({{.name = "a", .row_shape = {3}, .is_ragged = true}}),
          schema_of({ragged, {.name = "a", .same_row_shape_as = "r"}}),
          schema_of({fixed, {.name = "a", .is_ragged = true, .same_row_shape_as = "f"}}),
          schema_of({ragged, {.name = "r_offsets"}}),
          schema_of({ragged, fixed}, "f"),
          schema_of({ragged}, "none")})
        EXPECT_THROW(check_ragged_fields(schema), InternalError);
}

}  // namespace
}  // namespace hetseq
