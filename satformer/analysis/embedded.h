#pragma once
// Files that are compiled into the library (satformer/CMakeLists.txt lists them).
#include <string_view>

namespace satformer::analysis::embedded {

extern const std::string_view kTokenCategories;  // configs/analysis/token_categories.json
extern const std::string_view kReportTemplate;   // satformer/analysis/study/page/report.html
extern const std::string_view kReportStyle;      // report.css
extern const std::string_view kReportScript;     // report.js

}  // namespace satformer::analysis::embedded
