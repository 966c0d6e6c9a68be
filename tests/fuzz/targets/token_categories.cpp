// Categories of tokens, and with them the cutting of a text.
#include "satformer/analysis/tokens/categories.h"

#include "tests/fuzz/fuzz.h"

using namespace satformer;
using namespace satformer::fuzzing;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(bytes_of(data, size));
  constexpr std::string_view kText = "The cat's <b>99</b> lives; caf\xc3\xa9 \xff!\n";
  accepts("f.json", [&] {
    const auto categories = analysis::TokenCategories::parse(text, "f.json");
    std::size_t position = 0;
    for (const analysis::TextUnit& unit : categories.units(kText)) {
      expect(unit.begin == position && unit.end > unit.begin, "units follow each other");
      expect(unit.token_class >= 0 && static_cast<std::size_t>(unit.token_class) < categories.classes().size(),
             "a unit has a class");
      position = unit.end;
    }
    expect(position == kText.size(), "units cover the text");
  });
  return 0;
}
