#include "satformer/analysis/tokens/pattern_check.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "satformer/core/error.h"
#include "satformer/io/strict_json.h"

namespace satformer::analysis {
namespace {

// std::regex compiles a counted repetition into as many copies, and uses stack for each character of a match and each
// open parenthesis. So the copies of a pattern are counted, and neither they nor the parentheses may multiply.
class PatternCheck {
 public:
  PatternCheck(const std::string& pattern, const std::string& where) : pattern_(pattern), where_(where) {}

  void run() {
    refuse_unless(pattern_.size() <= kMaxBytes, "is longer than 1000 bytes");
    for (std::size_t i = 0; i < pattern_.size(); ++i) {
      const char c = pattern_[i];
      if (c == '\\') {
        ++i;
      } else if (c == '[' || c == ']') {
        in_brackets_ = c == '[';
      } else if (!in_brackets_) {
        take(i);
      }
      if (in_brackets_ || (c != ')' && c != '}')) closed_repeats_ = false;
    }
  }

 private:
  static constexpr std::size_t kMaxBytes = 1000, kMaxDepth = 16, kMaxCopies = 1000;

  void take(std::size_t i) {
    const char c = pattern_[i];
    const bool open_ended = c == '*' || c == '+' || pattern_.compare(i, 2, ",}") == 0;
    refuse_unless(!open_ended, "repeats without bound; write {0,200} for * and {1,200} for +");
    if (c == '(') {
      groups_.push_back(false);
      refuse_unless(groups_.size() <= kMaxDepth, "has more than 16 parentheses inside each other");
    } else if (c == ')' && !groups_.empty()) {
      closed_repeats_ = groups_.back();
      groups_.pop_back();
      if (closed_repeats_ && !groups_.empty()) groups_.back() = true;
    } else if (c == '{') {
      take_count(i + 1);
    } else if (c == '}') {
      closed_repeats_ = true;
    }
  }

  // "5}", "0,200}": the larger number is that of the copies.
  void take_count(std::size_t begin) {
    refuse_unless(!closed_repeats_, "repeats what has a repetition in it");
    if (!groups_.empty()) groups_.back() = true;
    std::size_t count = 0, copies = 0;
    for (std::size_t i = begin; i < pattern_.size() && pattern_[i] != '}'; ++i) {
      const char c = pattern_[i];
      count = c >= '0' && c <= '9' ? count * 10 + static_cast<std::size_t>(c - '0') : 0;
      copies = std::max(copies, count);
      refuse_unless(copies <= kMaxCopies, "repeats more than 1000 times");
    }
    copies_ += copies;
    refuse_unless(copies_ <= kMaxCopies, "repeats more than 1000 times in all");
  }

  void refuse_unless(bool condition, const char* reason) const {
    require(condition, "{}: the pattern {} {}", where_, in_quotes(pattern_), reason);
  }

  const std::string& pattern_;
  const std::string& where_;
  bool in_brackets_ = false, closed_repeats_ = false;  // what ended just before is, or holds, a repetition
  std::vector<bool> groups_;                           // open groups: whether they hold a repetition
  std::size_t copies_ = 0;
};

}  // namespace

void check_pattern(const std::string& pattern, const std::string& where) { PatternCheck(pattern, where).run(); }

}  // namespace satformer::analysis
