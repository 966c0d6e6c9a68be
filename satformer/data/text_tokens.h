#pragma once
// A text file as a split, for analyses that want the tokens of a text without `prepare`.
#include <cstdint>
#include <filesystem>
#include <string>

#include "satformer/data/tokenizer.h"

namespace satformer::data {

// Writes the file's documents (data/corpus.h: plain text, JSONL, compressed), each followed by end_of_text_id, as
// shards PREFIX_NNNNNN.bin of `directory`. Memory does not grow with the file. Error names the file and what is wrong
// with it.
void write_text_tokens(const std::filesystem::path& text, const Tokenizer& tokenizer, std::int32_t end_of_text_id,
                       const std::filesystem::path& directory, const std::string& prefix);

}  // namespace satformer::data
