#pragma once
// Reports made by hand are compared byte for byte with files of tests/data/analysis, which the program of 182efc2 wrote
// when reports were JSON from the start: nothing that reads them is to notice the difference.
#include <string>
#include <vector>

#include "satformer/analysis/output/plot.h"
#include "satformer/analysis/tokens/categories.h"
#include "satformer/io/files.h"
#include "tests/paths.h"

namespace satformer::analysis {

inline std::string reference(const std::string& name) {
  return read_file(testing::test_data_dir() / "analysis" / name);
}

inline std::string text_of(const std::vector<Plot>& plots) {
  std::string text;
  for (const Plot& plot : plots)
    text += "# " + plot.name + "\n" + plot.title + "\n" + plot.caption + "\n" + plot.script;
  return text;
}

inline TokenCategories reference_categories() {
  return TokenCategories::parse(
      R"({"name": "three", "contrast": ["meaning", "form"], "sources": [{"classes": ["x"], "source": "a book"}],
    "classes": [{"name": "x", "group": "form", "special": true}, {"name": "y", "group": "meaning", "default": true},
                {"name": "a", "group": "form", "words": ["a"]}]})",
      "three.json");
}

}  // namespace satformer::analysis
