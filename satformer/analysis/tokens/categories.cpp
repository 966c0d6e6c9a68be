#include "satformer/analysis/tokens/categories.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <system_error>

#include "satformer/analysis/embedded.h"
#include "satformer/analysis/tokens/pattern_check.h"
#include "satformer/core/error.h"
#include "satformer/io/files.h"
#include "satformer/io/strict_json.h"

namespace satformer::analysis {
namespace {

using nlohmann::json;

constexpr int kWord = -1;
constexpr std::uint64_t kMaxFileBytes = 1 << 24;
constexpr std::size_t kMaxPatterns = 100;
constexpr char32_t kMaxCharacter = 0x10ffff;
constexpr char32_t kNotUtf8 = 0xffffffff;

struct Character {
  char32_t code = kNotUtf8;
  std::size_t bytes = 1;
};

// The character at `at`; a byte that starts none is kNotUtf8.
Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 && lead < 0xf5 ? 4 : lead >= 0xe0 && lead < 0xf0 ? 3 : lead >= 0xc2 ? 2 : 1;
  if (bytes == 1 || lead >= 0xf5 || at + bytes > text.size()) return {};
  char32_t code = lead & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  return {code, bytes};
}

// "U+0061": 0x61.
std::optional<char32_t> character_number(std::string_view text) {
  if (!text.starts_with("U+") || text.size() < 6 || text.size() > 8) return std::nullopt;
  std::uint32_t code = 0;
  const auto [end, fault] = std::from_chars(text.data() + 2, text.data() + text.size(), code, 16);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return code;
}

// "U+0061..U+007A": both ends; nothing for other texts.
std::optional<std::pair<char32_t, char32_t>> character_range(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const auto first = character_number(text.substr(0, dots)), last = character_number(text.substr(dots + 2));
  if (!first || !last) return std::nullopt;
  return std::pair{*first, *last};
}

std::string lower_case(std::string_view word) {
  std::string lower(word);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

const std::string& text_member(const json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  require(found != object.end() && found->is_string() && !found->get_ref<const std::string&>().empty(),
          "{}: expected the text {}, got {}", where, in_quotes(key),
          found == object.end() ? "nothing" : shortened(*found));
  return found->get_ref<const std::string&>();
}

std::vector<std::string> text_list(const json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  const bool fits = found->is_array() && std::all_of(found->begin(), found->end(), [](const json& item) {
                      return item.is_string() && !item.get_ref<const std::string&>().empty();
                    });
  require(fits, "{}: {} must be a list of texts, got {}", where, in_quotes(key), shortened(*found));
  return found->get<std::vector<std::string>>();
}

void check_keys(const json& object, std::initializer_list<std::string_view> known, const std::string& where) {
  require(object.is_object(), "{}: expected an object, got {}", where, shortened(object));
  for (const auto& [key, unused] : object.items()) {
    require(std::find(known.begin(), known.end(), key) != known.end(), "{}: unknown key {}", where, in_quotes(key));
  }
}

}  // namespace

TokenCategories TokenCategories::load(const std::filesystem::path& path) {
  return parse(read_file(path, kMaxFileBytes), path.string());
}

TokenCategories TokenCategories::built_in() {
  return parse(std::string(embedded::kTokenCategories), "the built-in token categories");
}

TokenCategories TokenCategories::parse(const std::string& text, const std::string& source) {
  const json file = parse_strict_json(text, source);
  check_keys(file, {"name", "about", "sources", "contrast", "word_joiners", "classes"}, source);
  TokenCategories result;
  result.name_ = text_member(file, "name", source);
  result.sources_ = file.value("sources", json::array());
  const auto classes = file.find("classes");
  require(classes != file.end() && classes->is_array(), "{}: expected a list of classes", source);
  for (const json& item : *classes) result.read_class(item, source);
  require(result.special_ >= 0, "{}: one class needs \"special\": true", source);
  require(result.default_ >= 0, "{}: one class needs \"default\": true", source);
  const std::vector<std::string> contrast = text_list(file, "contrast", source);
  require(contrast.size() == 2, "{}: \"contrast\" must name two groups", source);
  result.contrast_ = {result.find_group(contrast[0], source), result.find_group(contrast[1], source)};
  const std::string joiners = file.contains("word_joiners") ? text_member(file, "word_joiners", source) : "";
  for (std::size_t at = 0; at < joiners.size();) {
    const Character joiner = character_at(joiners, at);
    result.joiners_.push_back(joiner.code);
    at += joiner.bytes;
  }
  return result;
}

void TokenCategories::read_class(const json& object, const std::string& source) {
  const auto index = static_cast<int>(classes_.size());
  check_keys(object, {"name", "group", "special", "default", "patterns", "characters", "words"},
             fmt::format("{}: class {}", source, index));
  const std::string& name = text_member(object, "name", fmt::format("{}: class {}", source, index));
  const std::string where = fmt::format("{}: class {}", source, in_quotes(name));
  for (const TokenClass& other : classes_) require(other.name != name, "{}: given twice", where);
  classes_.push_back({name, text_member(object, "group", where)});
  group_indices_.push_back(group_index(classes_.back().group));
  for (auto [key, member] : {std::pair{"special", &special_}, std::pair{"default", &default_}}) {
    if (!object.contains(key)) continue;
    require(object[key] == true, "{}: {} can only be true", where, in_quotes(key));
    require(*member < 0, "{}: {} is {} already", where,
            in_quotes(classes_[static_cast<std::size_t>(std::max(*member, 0))].name), key);
    *member = index;
  }
  for (const std::string& pattern : text_list(object, "patterns", where)) {
    check_pattern(pattern, where);
    require(patterns_.size() < kMaxPatterns, "{}: more than {} patterns", source, kMaxPatterns);
    try {
      patterns_.emplace_back(std::regex(pattern, std::regex::ECMAScript | std::regex::optimize), index);
    } catch (const std::regex_error& error) {
      fail("{}: {} is no regular expression: {}", where, in_quotes(pattern), error.what());
    }
  }
  read_characters(object, index, where);
  for (const std::string& word : text_list(object, "words", where)) {
    const auto [place, added] = words_.emplace(lower_case(word), index);
    require(added, "{}: the word {} is in class {} already", where, in_quotes(word),
            in_quotes(classes_[static_cast<std::size_t>(place->second)].name));
  }
}

// Each entry is a text of characters, or a range "U+2010..U+2027".
void TokenCategories::read_characters(const json& object, int token_class, const std::string& where) {
  for (const std::string& entry : text_list(object, "characters", where)) {
    if (const auto range = character_range(entry)) {
      const auto [first, last] = *range;
      require(first <= last && last <= kMaxCharacter, "{}: {} is no range of characters", where, in_quotes(entry));
      add_range(first, last, token_class, where);
      continue;
    }
    for (std::size_t at = 0; at < entry.size();) {
      const Character character = character_at(entry, at);
      add_range(character.code, character.code, token_class, where);
      at += character.bytes;
    }
  }
}

void TokenCategories::add_range(char32_t first, char32_t last, int token_class, const std::string& where) {
  const auto after = ranges_.upper_bound(last);
  const bool overlaps = after != ranges_.begin() && std::prev(after)->second.last >= first;
  require(!overlaps, "{}: U+{:04X} is in two classes, or twice in one", where,
          overlaps ? static_cast<unsigned>(std::max(first, std::prev(after)->first)) : 0u);
  ranges_[first] = {last, token_class};
}

int TokenCategories::group_index(const std::string& group) {
  const auto found = std::find(groups_.begin(), groups_.end(), group);
  if (found == groups_.end()) {
    groups_.push_back(group);
    return static_cast<int>(groups_.size()) - 1;
  }
  return static_cast<int>(found - groups_.begin());
}

int TokenCategories::find_group(const std::string& group, const std::string& source) const {
  const auto found = std::find(groups_.begin(), groups_.end(), group);
  require(found != groups_.end(), "{}: \"contrast\" names {}, which is the group of no class", source,
          in_quotes(group));
  return static_cast<int>(found - groups_.begin());
}

int TokenCategories::class_of_character(char32_t character) const {
  const auto after = ranges_.upper_bound(character);
  if (after == ranges_.begin()) return kWord;
  const Range& range = std::prev(after)->second;
  return character <= range.last ? range.token_class : kWord;
}

int TokenCategories::class_of_word(std::string_view word) const {
  const auto found = words_.find(lower_case(word));
  return found == words_.end() ? default_ : found->second;
}

std::vector<TextUnit> TokenCategories::pattern_units(std::string_view text) const {
  std::vector<TextUnit> taken;
  for (const auto& [pattern, token_class] : patterns_) {
    for (std::cregex_iterator match(text.data(), text.data() + text.size(), pattern), end; match != end; ++match) {
      const auto begin = static_cast<std::size_t>(match->position());
      const TextUnit unit{begin, begin + static_cast<std::size_t>(match->length()), token_class};
      const bool overlaps = std::any_of(taken.begin(), taken.end(), [&](const TextUnit& other) {
        return unit.begin < other.end && other.begin < unit.end;
      });
      if (unit.begin < unit.end && !overlaps) taken.push_back(unit);
    }
  }
  std::sort(taken.begin(), taken.end(), [](const TextUnit& a, const TextUnit& b) { return a.begin < b.begin; });
  return taken;
}

void TokenCategories::add_plain_units(std::string_view text, std::size_t begin, std::size_t end,
                                      std::vector<TextUnit>& units) const {
  const std::string_view part = text.substr(0, end);
  for (std::size_t at = begin; at < end;) {
    const std::size_t unit_begin = at;
    Character character = character_at(part, at);
    const int unit_class = class_of_character(character.code);
    at += character.bytes;
    while (at < end) {
      character = character_at(part, at);
      int next_class = class_of_character(character.code);
      // A joiner belongs to a word when another character of a word follows.
      if (unit_class == kWord && at + character.bytes < end &&
          std::find(joiners_.begin(), joiners_.end(), character.code) != joiners_.end() &&
          class_of_character(character_at(part, at + character.bytes).code) == kWord) {
        next_class = kWord;
      }
      if (next_class != unit_class) break;
      at += character.bytes;
    }
    const std::string_view unit = text.substr(unit_begin, at - unit_begin);
    units.push_back({unit_begin, at, unit_class == kWord ? class_of_word(unit) : unit_class});
  }
}

std::vector<TextUnit> TokenCategories::units(std::string_view text) const {
  std::vector<TextUnit> units;
  std::size_t at = 0;
  for (const TextUnit& taken : pattern_units(text)) {
    add_plain_units(text, at, taken.begin, units);
    units.push_back(taken);
    at = taken.end;
  }
  add_plain_units(text, at, text.size(), units);
  return units;
}

}  // namespace satformer::analysis
