// Fields of floating point and booleans: loaded as tensors of their type on any number of ranks, in
// whatever type the file has them, and what is not finite, too large or no boolean is named.
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <variant>

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "hetseq/data/check_corpus.hpp"
#include "hetseq/data/corpus.hpp"
#include "hetseq/data/hdf5/hdf5_types.hpp"
#include "hetseq/data/loading/loader.hpp"
#include "hetseq/data/order/batch_plan.hpp"

#include "data/error_text.hpp"
#include "data/generated_corpus.hpp"
#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::Thrown;
using test::thrown_by;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::int64_t columns = 3;

// Exact in all types, below zero, subnormal as a half.
double value_of(std::int64_t sample, std::int64_t column) {
    return sample % 7 == 0 ? std::ldexp(static_cast<double>(column), -24)
                           : static_cast<double>(sample % 50) * 0.5 - static_cast<double>(column);
}
bool flag_of(std::int64_t sample) {
    return sample % 3 == 1;
}

CorpusSchema real_schema() {
    const auto reals = [](const std::string& name, ElementType type) {
        return FieldSchema{.name = name, .rank = 2, .type = type, .row_shape = {columns}};
    };
    return {.kind = "measurements",
            .fields = {reals("halves", ElementType::float16),
                       reals("floats", ElementType::float32),
                       reals("doubles", ElementType::float64),
                       {.name = "flags", .type = ElementType::boolean}}};
}

/// Types in which the datasets are stored.
struct StoredTypes {
    Hdf5Type halves, floats, doubles, flags;
};

Hdf5Type copied(hid_t type) {
    return Hdf5Type{HETSEQ_HDF5_TRY(H5Tcopy(type))};
}

StoredTypes own_types() {
    return {half_type(), copied(H5T_IEEE_F32LE), copied(H5T_IEEE_F64LE), boolean_type()};
}
StoredTypes wider_types() {
    return {copied(H5T_IEEE_F32BE),
            copied(H5T_IEEE_F64LE),
            copied(H5T_IEEE_F64BE),
            copied(H5T_STD_U8LE)};
}
StoredTypes narrower_types() {
    Hdf5Type big_endian = half_type();
    HETSEQ_HDF5_TRY(H5Tset_order(big_endian.get(), H5T_ORDER_BE));
    return {std::move(big_endian), half_type(), copied(H5T_IEEE_F32LE), copied(H5T_STD_I8BE)};
}

/// A value other than the formula's: by dataset, row and column.
struct Exception {
    std::string dataset;
    std::int64_t row = 0;
    double value = 0;
};

Hdf5Dataset create(hid_t file, const std::string& name, hid_t type, std::vector<hsize_t> shape) {
    const auto rank = static_cast<int>(shape.size());
    const Hdf5Space space{HETSEQ_HDF5_TRY(H5Screate_simple(rank, shape.data(), nullptr))};
    const Hdf5Properties properties{HETSEQ_HDF5_TRY(H5Pcreate(H5P_DATASET_CREATE))};
    if (shape[0] > 0) {
        shape[0] = 5;
        HETSEQ_HDF5_TRY(H5Pset_chunk(properties.get(), rank, shape.data()));
        HETSEQ_HDF5_TRY(H5Pset_deflate(properties.get(), 4));
    }
    return Hdf5Dataset{HETSEQ_HDF5_TRY(H5Dcreate2(
        file, name.c_str(), type, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT))};
}

void write_reals(hid_t file,
                 const std::string& name,
                 hid_t type,
                 std::int64_t first,
                 std::int64_t samples,
                 const Exception& exception) {
    std::vector<double> values;
    for (std::int64_t row = 0; row < samples; ++row)
        for (std::int64_t column = 0; column < columns; ++column)
            values.push_back(exception.dataset == name && exception.row == row && column == 1
                                 ? exception.value
                                 : value_of(first + row, column));
    const Hdf5Dataset dataset = create(file, name, type, {hsize_t(samples), hsize_t(columns)});
    HETSEQ_HDF5_TRY(
        H5Dwrite(dataset.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
}

// The bytes are written as they are, in whatever type.
void write_flags(
    hid_t file, hid_t type, std::int64_t first, std::int64_t samples, const Exception& exception) {
    std::vector<std::int8_t> values;
    for (std::int64_t row = 0; row < samples; ++row)
        values.push_back(exception.dataset == "flags" && exception.row == row
                             ? static_cast<std::int8_t>(exception.value)
                             : static_cast<std::int8_t>(flag_of(first + row)));
    const Hdf5Dataset dataset = create(file, "flags", type, {hsize_t(samples)});
    HETSEQ_HDF5_TRY(H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
}

class RealFieldsTest : public testing::Test {
protected:
    // Collective. Shards of 20, 0 and 31 samples; the exception is in the last.
    void write(const StoredTypes& types, const Exception& exception = {}) {
        agree_on(world_, [&] {
            if (world_.rank() != 0)
                return;
            std::int64_t first = 0;
            for (const std::int64_t samples : {20, 0, 31}) {
                const Exception here = samples == 31 ? exception : Exception{};
                const Hdf5File file =
                    test::create_file(folder_ / ("shard-" + std::to_string(samples + 100) + ".h5"));
                write_reals(file.get(), "halves", types.halves.get(), first, samples, here);
                write_reals(file.get(), "floats", types.floats.get(), first, samples, here);
                write_reals(file.get(), "doubles", types.doubles.get(), first, samples, here);
                write_flags(file.get(), types.flags.get(), first, samples, here);
                first += samples;
            }
        });
    }

    Thrown checking(const CorpusSchema& schema = real_schema()) {
        const Thrown thrown = thrown_by([&] { check_corpus(world_, folder_.path(), schema); });
        for (const std::string& other : world_.all_gather(thrown.text))
            EXPECT_EQ(other, thrown.text);
        return thrown;
    }

    void expect_bad(const StoredTypes& types,
                    const Exception& exception,
                    const std::string& value,
                    const std::string& expected) {
        write(types, exception);
        const Thrown thrown = checking();
        EXPECT_EQ(thrown.code, ExitCode::bad_data);
        EXPECT_THAT(thrown.text,
                    AllOf(HasSubstr(bad_shard() + ": dataset '" + exception.dataset + "', row " +
                                    std::to_string(exception.row) + ": value " + value),
                          HasSubstr("(expected " + expected)));
    }

    std::string bad_shard() const { return folder_ / "shard-131.h5"; }

    HostComm world_ = test::world();
    test::SharedFolder folder_{world_};
};

class EchoCollator final : public Collator {
public:
    MicroBatch collate(const TensorDict& rows, const at::Tensor&) const override {
        MicroBatch batch;
        for (const auto& [name, tensor] : rows)
            batch.tensors[name] = tensor.clone();
        batch.weights = {1};
        return batch;
    }
};

void expect_formula(const MicroBatch& batch) {
    const std::map<std::string, at::ScalarType> types{
        {"halves", at::kHalf}, {"floats", at::kFloat}, {"doubles", at::kDouble}};
    for (std::int64_t i = 0; i < batch.samples; ++i) {
        const auto sample = batch.sample_ids[i].item<std::int64_t>();
        for (const auto& [name, type] : types) {
            const at::Tensor& values = batch.tensors.at(name);
            ASSERT_EQ(values.scalar_type(), type);
            for (std::int64_t column = 0; column < columns; ++column)
                ASSERT_EQ(values[i][column].item<double>(), value_of(sample, column))
                    << name << ", sample " << sample;
        }
        const at::Tensor& flags = batch.tensors.at("flags");
        ASSERT_EQ(flags.scalar_type(), at::kBool);
        ASSERT_EQ(flags[i].item<bool>(), flag_of(sample)) << "sample " << sample;
    }
}

TEST_F(RealFieldsTest, AreLoadedInTheirTypesHoweverTheyAreStored) {
    for (const auto& types : {own_types, wider_types, narrower_types}) {
        for (const IoMode io : {IoMode::collective, IoMode::serial}) {
            write(types());
            DataContext context{world_, true};
            Corpus corpus{context,
                          folder_.path(),
                          real_schema(),
                          {.shuffle_blocks = 2, .block_length = 7, .cache_mb = 1, .io = io}};
            const EchoCollator collator;
            Loader loader{corpus, collator, {.seed = 3}};
            const GlobalBatch batch{.begin = 0, .end = 51};
            const std::vector<std::int64_t> units(static_cast<std::size_t>(world_.size()), 0);
            std::vector<std::int64_t> shares = units;
            for (std::size_t r = 0; r < shares.size(); ++r)
                shares[r] =
                    51 * std::int64_t(r + 1) / world_.size() - 51 * std::int64_t(r) / world_.size();

            loader.request(batch, cut_by_rank(batch, shares), {.samples = 8});
            const LoadedShare share = loader.take();

            for (const MicroBatch& part : share.micro_batches())
                expect_formula(part);
            EXPECT_EQ(world_.all_reduce(share.samples(), ReduceOp::sum), 51);
        }
    }
}

TEST_F(RealFieldsTest, CheckSumsThem) {
    write(own_types());

    const CorpusReport report = check_corpus(world_, folder_.path(), real_schema());

    double sum = 0, least = 0, most = 0;
    std::int64_t flags = 0;
    for (std::int64_t sample = 0; sample < 51; ++sample) {
        for (std::int64_t column = 0; column < columns; ++column) {
            sum += value_of(sample, column);
            least = std::min(least, value_of(sample, column));
            most = std::max(most, value_of(sample, column));
        }
        flags += flag_of(sample);
    }
    const std::vector<std::string> types{"float16", "float32", "float64", "bool"};
    for (std::size_t i = 0; i < 4; ++i)
        EXPECT_EQ(report.fields[i].type, types[i]);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_NEAR(std::get<double>(report.fields[i].sum), sum, 1e-9);
        EXPECT_EQ(std::get<double>(report.fields[i].minimum), least);
        EXPECT_EQ(std::get<double>(report.fields[i].maximum), most);
    }
    EXPECT_EQ(std::get<std::int64_t>(report.fields[3].sum), flags);
}

TEST_F(RealFieldsTest, ValuesThatAreNotFiniteAreNamed) {
    const double infinity = std::numeric_limits<double>::infinity();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const auto& types : {own_types, wider_types, narrower_types}) {
        for (const char* dataset : {"halves", "floats", "doubles"}) {
            expect_bad(types(), {dataset, 17, infinity}, "inf", "a finite number)");
            expect_bad(types(), {dataset, 0, -infinity}, "-inf", "a finite number)");
        }
        expect_bad(types(), {"floats", 30, nan}, "nan", "a finite number)");
    }
}

// Stored wider than they are kept in memory, they would become infinite there.
TEST_F(RealFieldsTest, ValuesTooLargeForTheirTypeAreNamed) {
    expect_bad(wider_types(), {"halves", 3, 65505}, "65505", "-65504 to 65504)");
    expect_bad(wider_types(), {"floats", 3, 1e300}, "1e+300", "-3.40282347e+38 to 3.40282347e+38)");
}

TEST_F(RealFieldsTest, ValuesOutOfBoundsAreNamed) {
    write(own_types(), {"floats", 5, 1000.25});
    CorpusSchema schema = real_schema();
    schema.fields[1].minimum = -3.5;
    schema.fields[1].maximum = 1000;
    schema.fields[1].meaning = "volts";

    const Thrown thrown = checking(schema);

    EXPECT_EQ(thrown.code, ExitCode::bad_data);
    EXPECT_THAT(thrown.text,
                HasSubstr(bad_shard() + ": dataset 'floats', row 5: value 1000.25 (expected -3.5 "
                                        "to 1000, volts)"));
}

TEST_F(RealFieldsTest, BooleansThatAreNoneAreNamed) {
    expect_bad(own_types(), {"flags", 9, 2}, "2", "0 to 1)");
    expect_bad(wider_types(), {"flags", 9, -56}, "200", "0 to 1)");
    expect_bad(narrower_types(), {"flags", 9, -1}, "-1", "0 to 1)");
}

// In the middle of training too, on all ranks at the same batch.
TEST_F(RealFieldsTest, LoadingStopsBeforeABadValue) {
    write(own_types(), {"doubles", 12, std::numeric_limits<double>::quiet_NaN()});
    DataContext context{world_, true};
    Corpus corpus{context,
                  folder_.path(),
                  real_schema(),
                  {.shuffle_blocks = 1, .block_length = 7, .cache_mb = 1}};
    const EchoCollator collator;
    Loader loader{corpus, collator, {.shuffle = Shuffle::no}};
    std::vector<std::int64_t> taken;
    const Thrown thrown = thrown_by([&] {
        for (std::int64_t begin = 0; begin < 51; begin += 4) {
            const GlobalBatch batch{.begin = begin, .end = std::min<std::int64_t>(begin + 4, 51)};
            std::vector<std::int64_t> shares(static_cast<std::size_t>(world_.size()), 0);
            shares.back() = batch.size();
            loader.request(batch, cut_by_rank(batch, shares), {.samples = 8});
            loader.take();
            taken.push_back(begin);
        }
    });

    EXPECT_EQ(thrown.code, ExitCode::bad_data);
    EXPECT_THAT(thrown.text, HasSubstr(bad_shard() + ": dataset 'doubles', row 12: value nan"));
    EXPECT_EQ(taken.size(), 7U);  // row 12 is sample 32, in the block of samples 28 to 34
}

TEST_F(RealFieldsTest, OtherStoredTypesAreRefused) {
    Hdf5Type brain_float = copied(H5T_IEEE_F32LE);  // as half of a float, its exponent whole
    HETSEQ_HDF5_TRY(H5Tset_fields(brain_float.get(), 15, 7, 8, 0, 7));
    HETSEQ_HDF5_TRY(H5Tset_size(brain_float.get(), 2));
    Hdf5Type three{HETSEQ_HDF5_TRY(H5Tenum_create(H5T_NATIVE_INT8))};
    for (const char value : {0, 1, 2})
        HETSEQ_HDF5_TRY(
            H5Tenum_insert(three.get(), std::string(1, char('a' + value)).c_str(), &value));
    const std::tuple<std::string, hid_t, std::string> cases[] = {
        {"floats", H5T_STD_I32LE, "found integer of 4 bytes, expected IEEE floating point of 2, 4"},
        {"floats", brain_float.get(), "found floating point of 2 bytes, expected IEEE"},
        {"doubles", H5T_NATIVE_LDOUBLE, "found floating point of 16 bytes, expected IEEE"},
        {"flags", H5T_IEEE_F32LE, "found floating point of 4 bytes, expected h5py's bool or"},
        {"flags", H5T_STD_I16LE, "found integer of 2 bytes, expected h5py's bool or integers"},
        {"flags", three.get(), "found enumeration of 1 bytes, expected h5py's bool"}};
    for (const auto& [name, type, text] : cases) {
        write(own_types());
        agree_on(world_, [&, &name = name, type = type] {
            if (world_.rank() != 0)
                return;
            const Hdf5File file{H5Fopen(bad_shard().c_str(), H5F_ACC_RDWR, H5P_DEFAULT)};
            HETSEQ_HDF5_TRY(H5Ldelete(file.get(), name.c_str(), H5P_DEFAULT));
            std::vector<hsize_t> shape{31};
            if (name != "flags")
                shape.push_back(columns);
            create(file.get(), name, type, shape);
        });

        const Thrown thrown = checking();

        EXPECT_EQ(thrown.code, ExitCode::bad_data);
        EXPECT_THAT(thrown.text,
                    AllOf(HasSubstr(bad_shard() + ": dataset '" + name + "' is of the wrong type"),
                          HasSubstr(text)));
    }
}

}  // namespace
}  // namespace hetseq
