#include "hetseq/text/table_reader.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(TableFormat format, const std::vector<std::string>& lines) {
    TableReader table{format};
    Rows rows;
    for (const std::string& line : lines)
        if (table.add(line, "a line"))
            rows.push_back(table.row());
    return rows;
}

TEST(TableReaderTest, TabsDivideColumnsAndQuotesMeanNothing) {
    EXPECT_THAT(
        rows_of(TableFormat::tsv, {"a \"b\"\t1", "", "  ", "\"x\t\ty", "one"}),
        ElementsAre(ElementsAre("a \"b\"", "1"), ElementsAre("\"x", "", "y"), ElementsAre("one")));
}

TEST(TableReaderTest, AReturnWithinALineIsALineEndInQuotesAndAnErrorElsewhere) {
    EXPECT_THAT(rows_of(TableFormat::csv, {"\"a\rb\",1"}), ElementsAre(ElementsAre("a\nb", "1")));
    for (const TableFormat format : {TableFormat::csv, TableFormat::tsv})
        EXPECT_THAT([&] { rows_of(format, {"a,1\rb,2"}); },
                    testing::ThrowsMessage<BadData>(HasSubstr("a line holds a carriage return")));
}

TEST(TableReaderTest, CommasDivideFieldsOutsideOfQuotes) {
    EXPECT_THAT(
        rows_of(TableFormat::csv, {"a,\"b, c\",1", "\"\",x", "a\"b,", "\"say \"\"no\"\"\""}),
        ElementsAre(ElementsAre("a", "b, c", "1"),
                    ElementsAre("", "x"),
                    ElementsAre("a\"b", ""),
                    ElementsAre("say \"no\"")));
}

TEST(TableReaderTest, QuotedFieldsHoldLineEnds) {
    EXPECT_THAT(rows_of(TableFormat::csv, {"\"one", "", "two\",1", "three,2"}),
                ElementsAre(ElementsAre("one\n\ntwo", "1"), ElementsAre("three", "2")));
}

TEST(TableReaderTest, AQuoteMayStayOpen) {
    TableReader table{TableFormat::csv};

    EXPECT_FALSE(table.add("a,\"b", "line 1"));
    EXPECT_TRUE(table.is_within_quotes());
}

TEST(TableReaderTest, TextBehindAClosingQuoteIsRefused) {
    TableReader table{TableFormat::csv};
    try {
        table.add("\"a\"b,c", "t.csv, line 7");
        FAIL() << "no error";
    } catch (const BadData& error) {
        EXPECT_THAT(error.what(), HasSubstr("t.csv, line 7 has text behind a closing quote"));
    }
}

}  // namespace
}  // namespace hetseq
