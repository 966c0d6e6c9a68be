#include "satformer/analysis/output/gnuplot.h"

#include <limits>

#include "satformer/core/error.h"
#include "tests/catch.h"
#include "tests/satformer/data/support.h"

namespace {

using namespace satformer;
using namespace satformer::analysis;
using Catch::Matchers::Contains;

}  // namespace

TEST_CASE("gnuplot's refusal is told in its own words", "[analysis]") {
  if (!have_gnuplot()) return;
  const testing::TemporaryFolder folder;
  CHECK_THROWS_WITH(draw({{"bad", "Bad", "", "plot nonsense nonsense\n"}}, folder.path()),
                    Contains("gnuplot could not draw bad.svg") && Contains("nonsense"));
}

TEST_CASE("plots without values are left out, with few they are drawn", "[analysis]") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  CHECK(script_of(LinePlot{.title = "", .x_label = "", .y_label = "", .lines = {{"a", {1, 2}, {none, none}}}}).empty());
  CHECK(
      script_of(HeatMap{.title = "", .x_label = "", .y_label = "", .columns = {"0"}, .rows = {"0"}, .values = {{none}}})
          .empty());
  CHECK(script_of(BarPlot{.title = "", .y_label = "", .names = {"a"}, .values = {none}, .low = {none}, .high = {none}})
            .empty());
  if (!have_gnuplot()) return;
  const testing::TemporaryFolder folder;
  const LinePlot lines{
      .title = "It's", .x_label = "x_1", .y_label = "", .lines = {{"a'b", {1, 2}, {none, 1}, {0, 0}, {1, 2}}}};
  const HeatMap one{.title = "", .x_label = "", .y_label = "", .columns = {"0"}, .rows = {"0"}, .values = {{0.0}}};
  const HeatMap gaps{
      .title = "", .x_label = "", .y_label = "", .columns = {"0", "1"}, .rows = {"0"}, .values = {{none, 1}}};
  const BarPlot bars{
      .title = "", .y_label = "", .names = {"a", "b"}, .values = {1, none}, .low = {none, none}, .high = {none, none}};
  CHECK_NOTHROW(draw({{"lines", "", "", script_of(lines)},
                      {"one", "", "", script_of(one)},
                      {"gaps", "", "", script_of(gaps)},
                      {"bars", "", "", script_of(bars)}},
                     folder.path()));
}
