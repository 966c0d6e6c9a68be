#pragma once
// What SentencePiece takes on trust when it loads a model, checked first: a model may come from anywhere.
#include <string>
#include <string_view>

namespace satformer::data {

// `model` holds the bytes of a ModelProto. Error names `source` and what is wrong:
//   - no protocol buffer of that kind;
//   - a piece that is empty, longer than 8000 bytes, no UTF-8, holds U+0000, has a score that is no finite number, or
//     is of the byte type and not written <0xNN>. SentencePiece would throw, abort, or compare NaN;
//   - a table of character replacements (precompiled_charsmap) that leads outside of itself, has a circle, or more
//     than 32 replacements for prefixes of one text. SentencePiece would read what lies behind it in memory.
// What is left for SentencePiece to find is told by it as a status: an empty model, pieces that appear twice, and so
// on.
void check_sentencepiece_model(std::string_view model, const std::string& source);

}  // namespace satformer::data
