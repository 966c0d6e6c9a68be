#pragma once
// Cuts streamed text into lines that end with \n or \r\n.
#include <string_view>

namespace satformer::data {

// Calls `on_text(part)` for the parts of a line without its end and `on_line_end(eol)` with "\n" or "\r\n". A last
// line without an end gets no on_line_end.
template <typename OnText, typename OnLineEnd>
class LineSplitter {
 public:
  LineSplitter(OnText on_text, OnLineEnd on_line_end) : on_text_(on_text), on_line_end_(on_line_end) {}

  void push(std::string_view text) {
    while (!text.empty()) {
      if (held_return_) {
        held_return_ = false;
        if (text.front() == '\n') {
          on_line_end_(std::string_view("\r\n"));
          text.remove_prefix(1);
          continue;
        }
        on_text_(std::string_view("\r"));
      }
      const std::size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      const bool has_return = line.ends_with('\r');
      if (has_return) line.remove_suffix(1);
      if (!line.empty()) on_text_(line);
      if (end == std::string_view::npos) {
        held_return_ = has_return;  // its \n may come with the next part
        return;
      }
      on_line_end_(std::string_view(has_return ? "\r\n" : "\n"));
      text.remove_prefix(end + 1);
    }
  }

  void finish() {
    if (held_return_) on_text_(std::string_view("\r"));
    held_return_ = false;
  }

 private:
  OnText on_text_;
  OnLineEnd on_line_end_;
  bool held_return_ = false;
};

}  // namespace satformer::data
