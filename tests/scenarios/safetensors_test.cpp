// Headers of safetensors files come from elsewhere: whatever is in them, reading ends with a header or with an error
// that names the file.
#include "scenarios/commands/weights/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

struct Safetensors : CommandTest {
  std::string file() const { return path("tensors.safetensors"); }
  std::string refusal_of(const std::string& header, const std::string& elements, std::int64_t length = -1) const;
};

// `length`: that of the header as the file gives it; -1: the true one.
std::string Safetensors::refusal_of(const std::string& header, const std::string& elements, std::int64_t length) const {
  std::uint64_t number = length < 0 ? header.size() : static_cast<std::uint64_t>(length);
  std::ofstream out(file(), std::ios::binary);
  for (int i = 0; i < 8; ++i, number >>= 8) out.put(static_cast<char>(number & 0xff));
  out << header << elements;
  out.close();
  try {
    read_safetensors_header(file());
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr(file()));
    return error.what();
  }
  return "";
}

const std::string two = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                        R"("b":{"dtype":"F16","shape":[2,2],"data_offsets":[8,16]}})";

TEST_F(Safetensors, HeaderGivesShapesAndPlaces) {
  EXPECT_EQ(refusal_of(two, std::string(16, 'x')), "");
  const SafetensorsHeader header = read_safetensors_header(file());
  EXPECT_EQ(header.tensors.at("b").shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(header.tensors.at("b").begin, 8 + two.size() + 8);
  EXPECT_EQ(header.bytes.size(), 8 + two.size());
}

TEST_F(Safetensors, FileThatIsCutShortIsRefused) {
  EXPECT_THAT(refusal_of(two, std::string(15, 'x')), HasSubstr("cut short"));
  EXPECT_THAT(refusal_of(two, std::string(17, 'x')), HasSubstr("longer than its header says"));
  EXPECT_THAT(refusal_of("", "", 100), HasSubstr("header of 100 bytes, and the file has 8"));
  std::ofstream(file()) << "abc";
  EXPECT_THROW(read_safetensors_header(file()), std::runtime_error);
  std::filesystem::remove(file());
  EXPECT_THROW(read_safetensors_header(file()), std::runtime_error);
}

TEST_F(Safetensors, LengthBeyondTheFileAllocatesNothing) {
  EXPECT_THAT(refusal_of(two, "", std::int64_t{1} << 62), HasSubstr("give a header of"));
  EXPECT_THAT(refusal_of("{}", "", 100'000'001), HasSubstr("give a header of 100000001 bytes"));
}

TEST_F(Safetensors, DamagedEntriesAreRefused) {
  const auto with = [&](const std::string& entry) { return refusal_of(R"({"a":)" + entry + "}", std::string(8, 'x')); };
  EXPECT_THAT(refusal_of("{", ""), HasSubstr("no JSON"));
  EXPECT_THAT(refusal_of("[1]", ""), HasSubstr("no JSON object"));
  EXPECT_THAT(refusal_of(std::string(100000, '['), ""), HasSubstr("no JSON"));
  EXPECT_THAT(with("7"), HasSubstr("no dtype, shape and data_offsets"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), HasSubstr("no dtype, shape"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[2.5],"data_offsets":[0,8]})"), HasSubstr("no dtype, shape"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[2],"data_offsets":[8]})"), HasSubstr("no dtype, shape"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"), HasSubstr("does not fill its bytes"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), HasSubstr("does not fill its bytes"));
  // 2^31 x 2^31 x 4 elements are 0 in 64 bits.
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[2147483648,2147483648,4],"data_offsets":[0,0]})"),
              HasSubstr("does not fill its bytes"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[2],"data_offsets":[4611686018427387900,4611686018427387908]})"),
              HasSubstr("no dtype, shape"));
  EXPECT_THAT(refusal_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                         R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                         std::string(8, 'x')),
              HasSubstr("names a twice"));
  EXPECT_THAT(refusal_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                         R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                         std::string(12, 'x')),
              HasSubstr("overlap or leave a hole"));
}

TEST_F(Safetensors, WrittenHeaderIsReadBack) {
  const std::string bytes = safetensors_header({{"a", {3, 2}}, {"b", {5}}}, Dtype::bfloat16);
  EXPECT_EQ(bytes.size() % 8, 0u);
  std::ofstream(file(), std::ios::binary) << bytes << std::string(22, 'x');
  const SafetensorsHeader header = read_safetensors_header(file());
  EXPECT_EQ(header.tensors.at("a").dtype, "BF16");
  EXPECT_EQ(header.tensors.at("b").begin, bytes.size() + 12);
  EXPECT_EQ(header.tensors.at("b").shape, std::vector<std::int64_t>{5});
}

}  // namespace
}  // namespace slipway::test
