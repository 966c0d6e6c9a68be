#include "satformer/analysis/tokens/categories.h"

#include "satformer/core/error.h"
#include "tests/catch.h"

namespace {

using namespace satformer;
using namespace satformer::analysis;
using Catch::Matchers::Contains;
using Units = std::vector<std::pair<std::string, std::string>>;  // text, class

Units named(const TokenCategories& categories, const std::string& text) {
  Units result;
  std::size_t at = 0;
  for (const TextUnit& unit : categories.units(text)) {
    CHECK(unit.begin == at);  // nothing between two units
    at = unit.end;
    result.emplace_back(text.substr(unit.begin, unit.end - unit.begin),
                        categories.classes()[static_cast<std::size_t>(unit.token_class)].name);
  }
  CHECK(at == text.size());
  return result;
}

// A file with the given classes after the two that every file needs.
std::string file_with(const std::string& classes, const std::string& rest = "") {
  return R"({"name": "test", "contrast": ["other", "none"], "classes": [
    {"name": "special", "group": "none", "special": true}, {"name": "word", "group": "other", "default": true})" +
         (classes.empty() ? "" : ", " + classes) + "]" + rest + "}";
}

std::string error_of_file(const std::string& text) {
  try {
    TokenCategories::parse(text, "f.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the built-in categories tell English words apart", "[analysis]") {
  const TokenCategories categories = TokenCategories::built_in();
  CHECK(named(categories, "And the LORD didn't make 23 well-known kings,\n") == Units{{"And", "conjunction"},
                                                                                      {" ", "space"},
                                                                                      {"the", "determiner"},
                                                                                      {" ", "space"},
                                                                                      {"LORD", "content"},
                                                                                      {" ", "space"},
                                                                                      {"didn't", "auxiliary"},
                                                                                      {" ", "space"},
                                                                                      {"make", "content"},
                                                                                      {" ", "space"},
                                                                                      {"23", "digits"},
                                                                                      {" ", "space"},
                                                                                      {"well-known", "content"},
                                                                                      {" ", "space"},
                                                                                      {"kings", "content"},
                                                                                      {",", "punctuation"},
                                                                                      {"\n", "line_end"}});
  CHECK(named(categories, "thou shalt not").front().second == "pronoun");
  CHECK(named(categories, "don\xe2\x80\x99t").front() ==
        std::pair<std::string, std::string>{"don\xe2\x80\x99t", "auxiliary"});
  CHECK(named(categories, "dogs' --").front() == std::pair<std::string, std::string>{"dogs", "content"});
  CHECK(named(categories, "caf\xc3\xa9 \xd1\x8f").front().second == "content");
}

TEST_CASE("markup goes before words", "[analysis]") {
  const TokenCategories categories = TokenCategories::built_in();
  CHECK(named(categories, "a<br/>see https://x.org/y &amp; z") == Units{{"a", "determiner"},
                                                                        {"<br/>", "markup"},
                                                                        {"see", "content"},
                                                                        {" ", "space"},
                                                                        {"https://x.org/y", "markup"},
                                                                        {" ", "space"},
                                                                        {"&amp;", "markup"},
                                                                        {" ", "space"},
                                                                        {"z", "content"}});
  CHECK(named(categories, "1 < 2 and 3 > 2")[2].second == "punctuation");
}

TEST_CASE("groups and the contrast of the built-in categories", "[analysis]") {
  const TokenCategories categories = TokenCategories::built_in();
  CHECK(categories.groups() == std::vector<std::string>{"structural", "digits", "functional", "semantic"});
  CHECK(categories.groups()[static_cast<std::size_t>(categories.contrast().first)] == "semantic");
  CHECK(categories.groups()[static_cast<std::size_t>(categories.contrast().second)] == "functional");
  CHECK(categories.classes()[static_cast<std::size_t>(categories.special_class())].name == "special");
  CHECK(categories.sources().size() >= 3);
}

TEST_CASE("bytes that are no UTF-8 belong to words", "[analysis]") {
  const TokenCategories categories = TokenCategories::built_in();
  for (const std::string text : {"a\xff z", "\xe2\x80", "\xf5\x80\x80\x80", "\x80"}) named(categories, text);
  CHECK(named(categories, "\xe2\x80").size() == 1);
  CHECK(categories.units("").empty());
}

TEST_CASE("a user's own categories", "[analysis]") {
  const TokenCategories categories =
      TokenCategories::parse(file_with(R"({"name": "colour", "group": "other", "words": ["Red", "rot"]},
                   {"name": "tag", "group": "none", "patterns": ["@[a-z+*]{1,20}\\+?"]},
                   {"name": "sign", "group": "none", "characters": ["!?", "U+0020..U+0020"]})"),
                             "f.json");
  CHECK(named(categories, "rED hat @me!?") ==
        Units{{"rED", "colour"}, {" ", "sign"}, {"hat", "word"}, {" ", "sign"}, {"@me", "tag"}, {"!?", "sign"}});
}

TEST_CASE("faulty categories are told by file, class and fault", "[analysis]") {
  CHECK_THAT(error_of_file("{"), Contains("f.json:"));
  CHECK_THAT(error_of_file(R"({"name": "x", "contrast": ["a", "b"], "classes": []})"), Contains("\"special\": true"));
  CHECK_THAT(error_of_file(file_with(R"({"name": "a", "group": "none", "wrods": ["x"]})")),
             Contains("unknown key \"wrods\""));
  CHECK_THAT(error_of_file(file_with(R"({"name": "a", "group": "none", "words": "x"})")),
             Contains("class \"a\": \"words\" must be a list of texts"));
  CHECK_THAT(error_of_file(file_with(R"({"name": "a", "group": "none", "words": ["x", "X"]})")),
             Contains("the word \"X\" is in class \"a\" already"));
  CHECK_THAT(error_of_file(file_with(R"({"name": "a", "group": "none", "patterns": ["("]})")),
             Contains("\"(\" is no regular expression"));
  for (const char* pattern : {"a*", "a+", "(ab){2,}"}) {
    const std::string faulty = std::string(R"({"name": "a", "group": "none", "patterns": [")") + pattern + "\"]}";
    CHECK_THAT(error_of_file(file_with(faulty)), Contains("repeats without bound"));
  }
  const std::string nested = std::string(17, '(') + "a" + std::string(17, ')');
  for (const auto& [pattern, reason] :
       {std::pair<std::string, const char*>{"((a{0,9}b){0,9}){0,9}", "a repetition in it"},
        {"a{0,9}{0,9}", "a repetition in it"},
        {"a{0,600}b{600}", "more than 1000 times in all"},
        {"a{99999999999999999999999}", "more than 1000 times"},
        {std::string(1001, 'a'), "longer than 1000 bytes"},
        {nested, "more than 16 parentheses"}}) {
    const std::string faulty = R"({"name": "a", "group": "none", "patterns": [")" + pattern + "\"]}";
    CHECK_THAT(error_of_file(file_with(faulty)), Contains(reason));
  }
  CHECK_THAT(error_of_file(file_with(R"({"name": "a", "group": "none", "characters": ["ab", "U+0061..U+007A"]})")),
             Contains("U+0062 is in two classes"));
  CHECK_THAT(error_of_file(file_with(R"({"name": "a", "group": "none", "characters": ["U+007A..U+0061"]})")),
             Contains("no range of characters"));
  CHECK_THAT(error_of_file(file_with(R"({"name": "word", "group": "none"})")), Contains("class \"word\": given twice"));
  CHECK_THAT(error_of_file(file_with(R"({"name": "a", "group": "none", "default": true})")),
             Contains("class \"a\": \"word\" is default already"));
  std::string contrast = file_with("");
  contrast.replace(contrast.find("\"none\"]"), 6, "\"nome\"");
  CHECK_THAT(error_of_file(contrast), Contains("names \"nome\", which is the group of no class"));
  CHECK(error_of_file(file_with("")).empty());
}
