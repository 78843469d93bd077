// Token files as Megatron-LM writes them, byte-level text, and the order of samples.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "exec/files/sample_order.h"
#include "exec/files/token_source.h"
#include "exec/run/data_files.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class Number>
void put(std::ostream& out, Number value) {
  out.write(reinterpret_cast<const char*>(&value), sizeof value);
}

// The layout of megatron/core/datasets/indexed_dataset.py, written here independently.
template <class Token>
std::string megatron_files(const std::string& name, int type, const std::vector<std::vector<Token>>& documents) {
  const std::string prefix = temporary_folder().path(name);
  std::ofstream bin(prefix + ".bin", std::ios::binary), idx(prefix + ".idx", std::ios::binary);
  for (const auto& document : documents)
    for (const Token token : document) put(bin, token);
  idx.write("MMIDIDX\0\0", 9);
  put(idx, std::uint64_t{1});
  put(idx, static_cast<std::uint8_t>(type));
  put(idx, std::uint64_t{documents.size()});
  put(idx, std::uint64_t{documents.size() + 1});
  for (const auto& document : documents) put(idx, static_cast<std::int32_t>(document.size()));
  std::int64_t place = 0;
  for (const auto& document : documents) {
    put(idx, place);
    place += static_cast<std::int64_t>(document.size() * sizeof(Token));
  }
  for (std::int64_t i = 0; i <= static_cast<std::int64_t>(documents.size()); ++i) put(idx, i);
  return prefix;
}

std::vector<std::int64_t> all_of(TokenSource& source) {
  std::vector<std::int64_t> tokens(source.size());
  source.read(0, tokens);
  return tokens;
}

std::string refusal(const std::string& path) {
  try {
    open_tokens(path);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

void overwrite(const std::string& path, std::streamoff at, const std::string& bytes) {
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(at)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST(MegatronTokens, AreTheDocumentsOneAfterAnotherInEveryIntegerType) {
  const auto wide = open_tokens(megatron_files<std::int32_t>("wide", 4, {{50256, 7}, {}, {100000, 0, 3}}) + ".bin");
  EXPECT_THAT(all_of(*wide), ElementsAre(50256, 7, 100000, 0, 3));
  EXPECT_FALSE(wide->is_bytes());
  const auto narrow = open_tokens(megatron_files<std::uint16_t>("narrow", 8, {{65535, 1}, {2}}) + ".idx");
  EXPECT_THAT(all_of(*narrow), ElementsAre(65535, 1, 2));
  const auto prefix = open_tokens(megatron_files<std::int64_t>("long", 5, {{1LL << 40}, {-1}}));
  EXPECT_THAT(all_of(*prefix), ElementsAre(1LL << 40, -1));
  std::vector<std::int64_t> middle(2);
  wide->read(1, middle);
  EXPECT_THAT(middle, ElementsAre(7, 100000));
}

TEST(MegatronTokens, DefectsAreNamedWithTheFile) {
  const std::string prefix = megatron_files<std::int32_t>("sound", 4, {{1, 2, 3}, {4, 5}});
  const auto damaged = [&](const std::string& name, std::streamoff at, const std::string& bytes) {
    for (const char* ending : {".bin", ".idx"})
      std::filesystem::copy_file(prefix + ending, temporary_folder().path(name) + ending,
                                 std::filesystem::copy_options::overwrite_existing);
    overwrite(temporary_folder().path(name) + ".idx", at, bytes);
    return refusal(temporary_folder().path(name));
  };
  EXPECT_EQ(refusal(prefix), "");
  EXPECT_THAT(damaged("magic", 0, "X"), AllOf(HasSubstr("magic.idx"), HasSubstr("MMIDIDX")));
  EXPECT_THAT(damaged("version", 9, "\7"), HasSubstr("version 7"));
  EXPECT_THAT(damaged("type", 17, "\6"), HasSubstr("type 6"));
  EXPECT_THAT(damaged("count", 18, "\77\77"), HasSubstr("ends too early"));
  EXPECT_THAT(damaged("huge", 24, "\77"), HasSubstr("ends too early"));
  EXPECT_THAT(damaged("gap", 34, "\2"), HasSubstr("sequence 1 does not begin"));
  std::filesystem::resize_file(prefix + ".bin", 19);
  EXPECT_THAT(refusal(prefix), AllOf(HasSubstr("sound.bin has 19 bytes"), HasSubstr("5 tokens of 4")));
  std::filesystem::resize_file(prefix + ".idx", 20);
  EXPECT_THAT(refusal(prefix), HasSubstr("sound.idx ends inside its header"));
  std::filesystem::remove(prefix + ".idx");
  EXPECT_THAT(refusal(prefix + ".bin"), HasSubstr("no .idx"));
}

TEST(ByteText, IsItsBytes) {
  const std::string path = temporary_folder().path("bytes.txt");
  std::ofstream(path, std::ios::binary) << "a\xff\n";
  const auto source = open_tokens(path);
  EXPECT_THAT(all_of(*source), ElementsAre('a', 255, '\n'));
  EXPECT_TRUE(source->is_bytes());
  EXPECT_THAT(refusal(temporary_folder().path("none.txt")), HasSubstr("cannot read"));
}

// Every byte counts, also far from the beginning and the end of a part that is read at once.
TEST(DataIdentity, IsThatOfAllBytesOfTheFiles) {
  const std::string path = temporary_folder().path("large.txt");
  std::string text(9'000'000, 'a');
  std::ofstream(path, std::ios::binary) << text;
  const DataIdentity whole = data_identity(path);
  EXPECT_EQ(whole.bytes, text.size());
  for (const std::size_t at : {0UL, 8'000UL, 4'194'303UL, 4'194'304UL, 8'999'999UL}) {
    overwrite(path, static_cast<std::streamoff>(at), "b");
    EXPECT_FALSE(data_identity(path).is_same(whole)) << "byte " << at;
    overwrite(path, static_cast<std::streamoff>(at), "a");
  }
  EXPECT_TRUE(data_identity(path).is_same(whole));
  std::ofstream(path, std::ios::binary) << text.substr(0, 1 << 22);  // ends with a part
  EXPECT_EQ(data_identity(path).bytes, 1U << 22);
  std::ofstream(path, std::ios::binary) << "";
  EXPECT_EQ(data_identity(path).bytes, 0U);
  EXPECT_THAT([&] { data_identity(path + ".none"); },
              testing::ThrowsMessage<std::runtime_error>(HasSubstr("cannot read " + path + ".none")));
  const std::string tokens = megatron_files<std::int32_t>("identity", 4, {{1, 2, 3}, {4, 5}});
  const DataIdentity both = data_identity(tokens);
  overwrite(tokens + ".idx", 34, "\2");
  EXPECT_FALSE(data_identity(tokens).is_same(both)) << "the index counts too";
}

TEST(SampleOrder, ShowsEveryWindowOncePerEpochInAnOrderOfItsOwn) {
  for (const std::uint64_t count : {1, 2, 3, 17, 64, 1000}) {
    const SampleOrder order(count, 5);
    std::vector<std::uint64_t> first, second;
    for (std::uint64_t i = 0; i < count; ++i) {
      first.push_back(order.window_of(i));
      second.push_back(order.window_of(count + i));
    }
    EXPECT_EQ(std::set<std::uint64_t>(first.begin(), first.end()).size(), count);
    EXPECT_EQ(std::set<std::uint64_t>(second.begin(), second.end()).size(), count);
    EXPECT_LT(*std::max_element(first.begin(), first.end()), count);
    if (count >= 17) {
      EXPECT_NE(first, second);
      EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
    }
  }
}

TEST(SampleOrder, DependsOnTheSeed) {
  const SampleOrder one(1000, 1), other(1000, 2);
  int same = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) same += one.window_of(i) == other.window_of(i) ? 1 : 0;
  EXPECT_LT(same, 10);  // one expected
}

}  // namespace
}  // namespace slipway::test
