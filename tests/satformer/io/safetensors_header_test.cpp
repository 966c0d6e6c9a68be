// The safetensors header against bytes that nobody vouches for. Without torch.
#include "satformer/io/safetensors_header.h"

#include <random>
#include <utility>

#include "tests/support/errors.h"

#include "tests/catch.h"

namespace satformer {
namespace {

using testing::contains;
using testing::error_of;

std::string error_for(const std::string& json, std::uint64_t data_size) {
  return error_of([&] { parse_safetensors_header(json, data_size, "x.safetensors"); });
}

// A header with one F32 tensor of two elements; `fields` replaces its description.
std::string with_fields(const std::string& fields) { return R"({"a":{)" + fields + "}}"; }

const std::string kGood = R"({"__metadata__":{"format":"pt"},)"
                          R"("b":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]},)"
                          R"("a":{"shape":[],"data_offsets":[0,4],"dtype":"I32"},)"
                          R"("none":{"dtype":"BF16","shape":[3,0],"data_offsets":[4,4]}}   )";
constexpr std::uint64_t kGoodBytes = 12;

TEST_CASE("a header is read, entries in the order of their bytes", "[core][safetensors]") {
  const SafetensorsHeader header = parse_safetensors_header(kGood, kGoodBytes, "x");
  REQUIRE(header.entries.size() == 3);
  CHECK(header.entries[0].name == "a");
  CHECK(header.entries[0].type == SafetensorsType::i32);
  CHECK(header.entries[0].shape.empty());
  CHECK(header.entries[1].name == "none");
  CHECK(header.entries[1].shape == std::vector<std::int64_t>{3, 0});
  CHECK(header.entries[2].name == "b");
  CHECK(header.entries[2].begin == 4);
  CHECK(header.entries[2].end == 12);
  CHECK(header.metadata.at("format") == "pt");
  CHECK(parse_safetensors_header("{}", 0, "x").entries.empty());
}

TEST_CASE("a written header is read back and aligned", "[core][safetensors]") {
  const SafetensorsHeader header = parse_safetensors_header(kGood, kGoodBytes, "x");
  const std::string bytes = format_safetensors_header(header, "x");
  CHECK(bytes.size() % 8 == 0);
  const std::uint64_t length =
      safetensors_header_length(std::as_bytes(std::span(bytes)), bytes.size() + kGoodBytes, "x");
  CHECK(length == bytes.size() - kSafetensorsPrefixBytes);
  const SafetensorsHeader again = parse_safetensors_header(bytes.substr(kSafetensorsPrefixBytes), kGoodBytes, "x");
  REQUIRE(again.entries.size() == 3);
  CHECK(again.entries[2].shape == header.entries[2].shape);
  CHECK(again.metadata == header.metadata);

  SafetensorsHeader names{.entries = {{.name = "quote \" and \n and \u00e9", .shape = {0}}}, .metadata = {}};
  const std::string escaped = format_safetensors_header(names, "x").substr(kSafetensorsPrefixBytes);
  CHECK(parse_safetensors_header(escaped, 0, "x").entries[0].name == names.entries[0].name);
  names.entries[0].name = "\xff";
  CHECK(contains(error_of([&] { format_safetensors_header(names, "x"); }), "must be UTF-8"));
  names.entries[0].name = "__metadata__";
  CHECK(contains(error_of([&] { format_safetensors_header(names, "x"); }), "no tensor can be named __metadata__"));
}

TEST_CASE("the length prefix must fit the file", "[core][safetensors]") {
  const auto error_of_length = [](std::string prefix, std::uint64_t file_size) {
    return error_of([&] { safetensors_header_length(std::as_bytes(std::span(prefix)), file_size, "x"); });
  };
  const std::string two = std::string("\x02\0\0\0\0\0\0\0", 8);
  CHECK(error_of_length(two, 10).empty());
  CHECK(contains(error_of_length(two, 9), "the file is truncated"));
  CHECK(contains(error_of_length("", 0), "too few for a safetensors file"));
  CHECK(contains(error_of_length(two.substr(1), 7), "too few for a safetensors file"));
  CHECK(contains(error_of_length(std::string(8, '\xff'), UINT64_MAX), "no safetensors file"));
  CHECK(contains(error_of_length(std::string("\x01\xe1\xf5\x05\0\0\0\0", 8), UINT64_MAX), "100000001 bytes"));
}

TEST_CASE("a bad header is an error that says what is wrong", "[core][safetensors]") {
  const std::string ok = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  REQUIRE(error_for(with_fields(ok), 8).empty());
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "does not begin with {"},
      {" " + with_fields(ok), "does not begin with {"},
      {"\xef\xbb\xbf" + with_fields(ok), "does not begin with {"},
      {"[]", "does not begin with {"},
      {with_fields(ok) + "x", "no valid JSON"},
      {with_fields(ok) + std::string("\0{", 2), "a zero byte"},
      {with_fields(ok) + "/**/", "no valid JSON"},
      {with_fields(ok + ","), "no valid JSON"},
      {R"({"a":[]})", R"(tensor "a": expected an object with dtype, shape and data_offsets, got an array)"},
      {R"({"a":1})", R"(tensor "a": expected an object)"},
      {R"({"a":-1})", "got a negative number"},
      {R"({"a":null})", "got null"},
      {R"({"a":true})", "got a boolean"},
      {R"({"a":{}})", R"(tensor "a": key "dtype" is missing)"},
      {with_fields(R"("dtype":"F32","data_offsets":[0,8])"), R"(key "shape" is missing)"},
      {with_fields(R"("dtype":"F32","shape":[2])"), R"(key "data_offsets" is missing)"},
      {with_fields(ok + R"(,"dtype":"F32")"), R"(tensor "a": duplicate key "dtype")"},
      {with_fields(ok + R"(,"more":1)"), R"(unknown key "more")"},
      {R"({"a":{)" + ok + R"(},"a":{)" + ok + "}}", R"(tensor "a" appears twice)"},
      {with_fields(R"("dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8])"), R"(dtype "F8_E4M3" cannot be read)"},
      {with_fields(R"("dtype":4,"shape":[2],"data_offsets":[0,8])"), "expected a dtype's name, got a number"},
      {with_fields(R"("dtype":"F32","shape":2,"data_offsets":[0,8])"), "expected shape to be an array"},
      {with_fields(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), "got a negative number"},
      {with_fields(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"), "no integer"},
      {with_fields(R"("dtype":"F32","shape":["2"],"data_offsets":[0,8])"), "got a string"},
      {with_fields(R"("dtype":"F32","shape":[[2]],"data_offsets":[0,8])"), "got an array"},
      {with_fields(R"("dtype":"F32","shape":[2],"data_offsets":[0])"), "needs two numbers, got 1"},
      {with_fields(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,8])"), "got more"},
      {with_fields(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), "lie outside"},
      {with_fields(R"("dtype":"F32","shape":[2],"data_offsets":[0,9])"), "lie outside the 8 bytes"},
      {with_fields(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"), "begin at 4, expected 0"},
      {with_fields(R"("dtype":"F32","shape":[1],"data_offsets":[0,8])"), "shape [1] need 4 bytes, data_offsets hold 8"},
      {with_fields(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), "8 bytes of data, but the tensors end at 4"},
      {with_fields(R"("dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551616])"), "no integer below 2^64"},
      {with_fields(R"("dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8])"), "is too large"},
      {with_fields(R"("dtype":"F32","shape":[4611686018427387904,2],"data_offsets":[0,8])"), "more than 2^63 bytes"},
      {with_fields(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0])"), "more than 2^63 bytes"},
      {with_fields(R"("dtype":"F32","shape":[0,4611686018427387904,8],"data_offsets":[0,0])"), "more than 2^63 bytes"},
      {R"({"__metadata__":{"a":1}})", "__metadata__: expected a string, got a number"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", R"(__metadata__: duplicate key "a")"},
      {R"({"__metadata__":{},"__metadata__":{}})", "duplicate key __metadata__"},
      {R"({"__metadata__":"a"})", "expected an object of strings"},
      {R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
       R"(tensor "a": its data begin at 2, expected 4)"}};
  for (const auto& [json, expected] : cases) {
    INFO(json);
    const std::string message = error_for(json, 8);
    INFO(message);
    CHECK(message.starts_with("x.safetensors: "));
    CHECK(contains(message, expected));
    CHECK(!contains(message, "\n"));
  }
}

TEST_CASE("deep, wide and long headers neither overflow the stack nor blow up", "[core][safetensors]") {
  CHECK(!error_for("{\"a\":" + std::string(5'000'000, '['), 0).empty());
  std::string objects;
  for (int i = 0; i < 500'000; ++i) objects += "{\"a\":";
  CHECK(!error_for(objects, 0).empty());
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  const std::string message =
      error_for(with_fields(R"("dtype":"U8","shape":[)" + ones + R"(],"data_offsets":[0,1])"), 1);
  CHECK(contains(message, "more than 64 dimensions"));
  CHECK(error_for("{\"" + std::string(5'000'000, 'n') + "\":1}", 0).size() < 400);
}

TEST_CASE("every truncation of a header is an error", "[core][safetensors]") {
  const std::string text = kGood.substr(0, kGood.find_last_of('}') + 1);
  for (std::size_t length = 0; length < text.size(); ++length) {
    CHECK(!error_for(text.substr(0, length), kGoodBytes).empty());
  }
}

// Whatever is accepted must be sound: a reader allocates and strides by these numbers.
void check_sound(const std::string& json, std::uint64_t data_size) {
  SafetensorsHeader header;
  try {
    header = parse_safetensors_header(json, data_size, "x");
  } catch (const Error&) {
    return;
  }
  std::uint64_t position = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    std::uint64_t bytes = item_size(entry.type);
    for (const std::int64_t size : entry.shape) bytes *= static_cast<std::uint64_t>(size);
    if (entry.begin != position || entry.end != position + bytes) FAIL("an unsound header was accepted: " << json);
    position = entry.end;
  }
  if (position != data_size) FAIL("an unsound header was accepted: " << json);
}

TEST_CASE("every flipped bit is an error or a sound header", "[core][safetensors]") {
  for (std::size_t bit = 0; bit < 8 * kGood.size(); ++bit) {
    std::string json = kGood;
    json[bit / 8] = static_cast<char>(json[bit / 8] ^ (1 << (bit % 8)));
    check_sound(json, kGoodBytes);
  }
}

TEST_CASE("random mutations are errors or sound headers", "[core][safetensors]") {
  const std::vector<std::string> pieces{"{",
                                        "}",
                                        "[",
                                        "]",
                                        "\"",
                                        ",",
                                        ":",
                                        "0",
                                        "12",
                                        "-1",
                                        "1e9",
                                        "null",
                                        "\"F16\"",
                                        "\"shape\"",
                                        "\"a\"",
                                        "__metadata__",
                                        "\\",
                                        " ",
                                        "\xc3",
                                        "\"BOOL\"",
                                        "99999999999999999999"};
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string json = kGood;
    for (auto edits = 1 + random() % 4; edits-- > 0;) {
      const std::size_t at = random() % (json.size() + 1);
      json.replace(at, random() % 6, random() % 3 == 0 ? std::string() : pieces[random() % pieces.size()]);
    }
    check_sound(json, kGoodBytes);
  }
}

}  // namespace
}  // namespace satformer
