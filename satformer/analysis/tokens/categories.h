#pragma once
// Which class a word belongs to: a content word, a closed-class word, punctuation and so on. The rule is a data file,
// configs/analysis/token_categories.json, which is also compiled in; docs/gates.md has its format.
//
// A text is cut into units, and each unit has one class:
//   1. what a class's `patterns` (ECMAScript regular expressions without unbounded repetition) match, the classes in
//   their
//      order;
//   2. of the rest, runs of characters of one class's `characters`;
//   3. runs of other characters are words; a `word_joiners` character between two of them belongs to the word. A word
//   is
//      looked up, in lower case (ASCII), in the classes' `words`, and is of the `default` class when it is in none.
// Bytes that are no UTF-8 count as characters of a word.
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace satformer::analysis {

struct TokenClass {
  std::string name;
  std::string group;  // classes of a group are also counted together
};

struct TextUnit {
  std::size_t begin = 0, end = 0;  // bytes
  int token_class = 0;             // index in classes()
};

class TokenCategories {
 public:
  // Error names `source`, the class and what is wrong: bad syntax, an unknown key, a word in two classes, a character
  // in two classes, a regular expression that is none, no default class.
  static TokenCategories parse(const std::string& text, const std::string& source);
  static TokenCategories load(const std::filesystem::path& path);
  static TokenCategories built_in();

  const std::vector<TokenClass>& classes() const { return classes_; }
  const std::vector<std::string>& groups() const { return groups_; }  // in the order of their first class
  int group_of(int token_class) const { return group_indices_[static_cast<std::size_t>(token_class)]; }
  // The groups whose difference of means is the contrast: first minus second, indices in groups().
  std::pair<int, int> contrast() const { return contrast_; }
  // The class of pieces that stand for no text: end of text, unknown.
  int special_class() const { return special_; }
  const nlohmann::json& sources() const { return sources_; }
  const std::string& name() const { return name_; }

  // The units of a text in order; together they are the whole text.
  std::vector<TextUnit> units(std::string_view text) const;

 private:
  struct Range {
    char32_t last = 0;
    int token_class = 0;
  };
  void read_class(const nlohmann::json& object, const std::string& source);
  void read_characters(const nlohmann::json& object, int token_class, const std::string& where);
  void add_range(char32_t first, char32_t last, int token_class, const std::string& where);
  int group_index(const std::string& group);
  int find_group(const std::string& group, const std::string& source) const;
  std::vector<TextUnit> pattern_units(std::string_view text) const;
  void add_plain_units(std::string_view text, std::size_t begin, std::size_t end, std::vector<TextUnit>& units) const;
  int class_of_character(char32_t character) const;  // -1: of a word
  int class_of_word(std::string_view word) const;

  std::string name_;
  nlohmann::json sources_;
  std::vector<TokenClass> classes_;
  std::vector<std::string> groups_;
  std::vector<int> group_indices_;
  std::pair<int, int> contrast_{0, 0};
  int special_ = -1, default_ = -1;
  std::vector<std::pair<std::regex, int>> patterns_;
  std::map<char32_t, Range> ranges_;  // by first character
  std::unordered_map<std::string, int> words_;
  std::vector<char32_t> joiners_;
};

}  // namespace satformer::analysis
