#pragma once
// What the fuzz targets of corpora collect.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "satformer/data/corpus.h"

namespace satformer::fuzzing {

class Documents : public data::DocumentSink {
 public:
  void text(std::string_view part) override { open_ += part; }
  void end_document() override {
    all_.push_back(std::move(open_));
    open_.clear();
  }
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::string open_;
  std::vector<std::string> all_;
};

}  // namespace satformer::fuzzing
