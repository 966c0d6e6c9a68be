// SentencePiece models: one that loads can be asked for everything.
#include "satformer/data/tokenizer.h"

#include "tests/fuzz/fuzz.h"

using namespace satformer;
using namespace satformer::fuzzing;

namespace {

void use(const data::Tokenizer& tokenizer) {
  for (const char* text : {"", " ", "a b", "AB  ab\n\nba", "\xe2\x96\x81 1\xc3\xa9\xf0\x9f\x98\x80", "<s> <0x0A>\t"}) {
    for (const auto& ids : {tokenizer.encode(text), tokenizer.encode_whole(text)}) {
      for (const std::int32_t id : ids) expect(id >= 0 && id < tokenizer.vocab_size(), "ids lie in the vocabulary");
      tokenizer.decode(ids);
    }
  }
  for (std::int64_t id = 0; id < tokenizer.vocab_size(); ++id) {
    expect(tokenizer.piece_bytes(id) == static_cast<std::int64_t>(tokenizer.piece_text(id).size()),
           "a piece's bytes are those of its text");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string model(bytes_of(data, size));
  const AllocationLimit limit(1024 * size + (std::size_t{4} << 20));  // SentencePiece's tries
  accepts("", [&] { use(data::Tokenizer::from_serialized(model, "tokenizer.model")); });
  return 0;
}
