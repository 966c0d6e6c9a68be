#include "satformer/runtime/safetensors.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <unistd.h>

#include <cstdlib>

#include "satformer/io/files.h"
#include "satformer/io/safetensors_header.h"
#include "tests/paths.h"
#include "tests/support/errors.h"
#include "tests/support/folders.h"

#include "tests/catch.h"

namespace satformer {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::error_of;
using testing::TemporaryFolder;

std::string header_text(const fs::path& path) {
  const std::string file = read_file(path);
  const auto length = safetensors_header_length(std::as_bytes(std::span(file)), file.size(), path.string());
  return file.substr(kSafetensorsPrefixBytes, length);
}

TEST_CASE("tensors of every dtype come back", "[core][safetensors]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "all.safetensors";
  TensorMap tensors;
  for (const auto dtype : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort,
                           at::kChar, at::kByte, at::kUInt16}) {
    tensors[std::string("t.") + c10::toString(dtype)] = at::arange(6, at::kLong).to(dtype).view({2, 3});
  }
  tensors["bool"] = at::arange(5, at::kLong).gt(2);
  tensors["scalar"] = at::ones({}, at::kDouble);
  tensors["empty"] = at::empty({3, 0, 2}, at::kHalf);
  write_safetensors(path, tensors, {{"format", "pt"}, {"note", "line\n\"two\""}});

  const Safetensors read = read_safetensors(path);
  CHECK(read.metadata == std::map<std::string, std::string>{{"format", "pt"}, {"note", "line\n\"two\""}});
  REQUIRE(read.tensors.size() == tensors.size());
  for (const auto& [name, tensor] : tensors) {
    INFO(name);
    const at::Tensor& other = read.tensors.at(name);
    CHECK(other.scalar_type() == tensor.scalar_type());
    CHECK(other.sizes() == tensor.sizes());
    // equal() knows no uint16
    CHECK(at::equal(other.to(at::kDouble), tensor.to(at::kDouble)));
  }
  CHECK(folder.names() == std::set<std::string>{"all.safetensors"});
}

TEST_CASE("the layout is the format's, in the order of names", "[core][safetensors]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "x.safetensors";
  write_safetensors(path, {{"b", at::ones({2}, at::kFloat)}, {"a", at::zeros({3}, at::kByte)}});
  const std::string file = read_file(path);
  const std::string json = header_text(path);
  CHECK(
      json.substr(0, json.find_last_of('}') + 1) ==
      R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"F32","shape":[2],"data_offsets":[3,11]}})");
  CHECK(json.size() % 8 == 0);
  CHECK((file.substr(8 + json.size()) == std::string("\0\0\0\0\0\x80\x3f\0\0\x80\x3f", 11)));
  write_safetensors(path, {});
  CHECK(read_safetensors(path).tensors.empty());
}

TEST_CASE("strided, shared and lazily negated tensors are written as they read", "[core][safetensors]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "x.safetensors";
  const at::Tensor base = at::arange(12, at::kFloat).view({3, 4});
  const at::Tensor negated = base.alias()._neg_view();
  write_safetensors(path, {{"transposed", base.t()},
                           {"slice", base.slice(1, 1, 3)},
                           {"base", base},
                           {"again", base},
                           {"expanded", base.select(1, 0).unsqueeze(1).expand({3, 5})},
                           {"negated", negated},
                           {"leaf", base.clone().requires_grad_(true)}});
  const TensorMap read = read_safetensors(path).tensors;
  CHECK(at::equal(read.at("transposed"), base.t()));
  CHECK(at::equal(read.at("slice"), base.slice(1, 1, 3)));
  CHECK(at::equal(read.at("again"), base));
  CHECK(at::equal(read.at("expanded"), base.select(1, 0).unsqueeze(1).expand({3, 5})));
  CHECK(at::equal(read.at("negated"), base.neg()));
  CHECK(!read.at("leaf").requires_grad());
  CHECK(read.at("base").data_ptr() != read.at("again").data_ptr());
  CHECK(read.at("transposed").is_contiguous());
}

TEST_CASE("what cannot be stored is refused before anything is written", "[core][safetensors]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "x.safetensors";
  const auto message_for = [&](const std::string& name, const at::Tensor& tensor) {
    return error_of([&] { write_safetensors(path, {{name, tensor}}); });
  };
  CHECK(message_for("w", at::Tensor()) == path.string() + ": tensor \"w\": is undefined");
  CHECK(contains(message_for("w", at::empty({2}, at::kComplexFloat)), "dtype ComplexFloat cannot be stored"));
  CHECK(contains(message_for("w", at::empty({2}, at::TensorOptions().device(at::kMeta))), "a dense tensor with data"));
  CHECK(contains(message_for("w", at::ones({2, 2}).to_sparse()), "a dense tensor with data"));
  CHECK(contains(message_for("__metadata__", at::ones({1})), "no tensor can be named __metadata__"));
  CHECK(contains(message_for("\xff", at::ones({1})), "must be UTF-8"));
  CHECK(folder.names().empty());
  CHECK(contains(error_of([&] { write_safetensors("/dev/full", {{"w", at::ones({1000})}}); }), "No space left"));
}

TEST_CASE("every truncation and every extension of a file is an error", "[core][safetensors]") {
  const TemporaryFolder folder;
  write_safetensors(folder / "good", {{"a", at::ones({3})}, {"b", at::ones({2}, at::kBool)}}, {{"k", "v"}});
  const std::string good = read_file(folder / "good");
  const fs::path path = folder / "bad";
  for (std::size_t length = 0; length < good.size(); ++length) {
    write_file_atomically(path, std::string_view(good).substr(0, length));
    const std::string message = error_of([&] { read_safetensors(path); });
    CHECK(message.starts_with(path.string() + ": "));
  }
  write_file_atomically(path, good + "x");
  CHECK(contains(error_of([&] { read_safetensors(path); }), "but the tensors end at"));
}

TEST_CASE("every flipped bit of a file is an error or a valid map", "[core][safetensors]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "file";
  write_safetensors(path, {{"a", at::ones({3})}, {"b", at::ones({2}, at::kBool)}}, {{"k", "v"}});
  const std::string good = read_file(path);
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    write_file_atomically(path, bad);
    try {
      for (const auto& [name, tensor] : read_safetensors(path).tensors) {
        if (tensor.numel() > 0) (void)tensor.to(at::kDouble).sum().item<double>();
      }
    } catch (const Error&) {
    }
  }
}

TEST_CASE("a BOOL byte must be 0 or 1", "[core][safetensors]") {
  const TemporaryFolder folder;
  write_safetensors(folder / "x", {{"mask", at::ones({4}, at::kBool)}});
  std::string bytes = read_file(folder / "x");
  bytes.back() = 2;
  write_file_atomically(folder / "x", bytes);
  CHECK(contains(error_of([&] { read_safetensors(folder / "x"); }), "tensor \"mask\": a BOOL byte"));
}

TEST_CASE("what is no file is refused", "[core][safetensors]") {
  const TemporaryFolder folder;
  CHECK(contains(error_of([&] { read_safetensors(folder / "none"); }), "No such file"));
  CHECK(contains(error_of([&] { read_safetensors(folder.path()); }), "expected a regular file"));
  CHECK(contains(error_of([&] { read_safetensors("/dev/zero"); }), "expected a regular file"));
}

TEST_CASE("the reference vectors are read", "[core][safetensors]") {
  const fs::path golden = testing::shared_dir() / "golden";
  if (!fs::exists(golden)) {
    WARN("skipped: no folder " << golden.string() << " with the reference vectors");
    return;
  }
  int files = 0;
  for (const auto& entry : fs::directory_iterator(golden)) {
    const fs::path path = entry.path() / "golden.safetensors";
    if (!fs::exists(path)) continue;
    INFO(path.string());
    const Safetensors read = read_safetensors(path);
    CHECK(read.metadata.contains("architecture"));
    for (const char* name : {"loss", "lr"}) {
      if (const auto found = read.tensors.find(name); found != read.tensors.end()) {
        CHECK(found->second.dim() == (read.tensors.contains("lr") ? 1 : 0));
      }
    }
    // What we write is read back the same: every tensor of a file that Python wrote.
    const TemporaryFolder folder;
    write_safetensors(folder / "copy", read.tensors, read.metadata);
    const Safetensors copy = read_safetensors(folder / "copy");
    CHECK(copy.metadata == read.metadata);
    REQUIRE(copy.tensors.size() == read.tensors.size());
    for (const auto& [name, tensor] : read.tensors) CHECK(at::equal(copy.tensors.at(name), tensor));
    ++files;
  }
  CHECK(files > 0);
}

}  // namespace
}  // namespace satformer
