// What is measured, and the process that measures.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "satformer/bench/operator_times.h"
#include "satformer/bench/statistics.h"
#include "satformer/bench/trunk.h"
#include "satformer/bench/worker.h"
#include "satformer/bench/worker_process.h"
#include "satformer/core/clock.h"
#include "satformer/core/error.h"

// After torch.
#include "tests/catch.h"

namespace {

using namespace satformer;
using namespace satformer::bench;
using Catch::Matchers::Contains;
using nlohmann::json;

const Trunk kTrunk{.vocab_size = 61,
                   .hidden_size = 32,
                   .num_hidden_layers = 3,
                   .num_heads = 4,
                   .num_kv_heads = 2,
                   .intermediate_size = 48};

json tiny_config() {
  return json::parse(R"({"model": {"architecture": "satformer", "config_overrides": {"vocab_size": 61,
    "hidden_size": 32, "num_hidden_layers": 3, "num_heads": 4, "num_kv_heads": 2, "intermediate_size": 48,
    "tie_word_embeddings": true}}, "data": {"seq_length": 16}, "training": {"batch_size": 2, "max_steps": 1000,
    "warmup_steps": 0, "gradient_accumulation_steps": 1, "dtype": "float32"}, "system": {"device": "cpu", "threads": 1}})");
}

// The replies to the requests, in order.
std::vector<json> serve(const std::vector<json>& requests, bool expected = true) {
  std::stringstream input, output;
  for (const json& request : requests) input << request.dump() << "\n";
  CHECK(serve_measurements(input, output) == expected);
  std::vector<json> replies;
  for (std::string line; std::getline(output, line);) replies.push_back(json::parse(line));
  return replies;
}

std::map<std::string, std::int64_t> calls_of_part(const json& operators, const std::string& part) {
  std::map<std::string, std::int64_t> calls;
  for (const json& entry : operators) {
    if (entry.at("part") == part) calls[entry.at("name")] += entry.at("calls").get<std::int64_t>();
  }
  return calls;
}

}  // namespace

TEST_CASE("measurements are summed up by median, range and quartiles", "[bench]") {
  const Summary odd = summarize({3.0, 1.0, 2.0}), even = summarize({4.0, 1.0, 2.0, 3.0}), one = summarize({5.0});
  CHECK(odd.median == 2.0);
  CHECK(odd.min == 1.0);
  CHECK(odd.max == 3.0);
  CHECK(even.median == 2.5);
  CHECK(one.median == 5.0);
  CHECK_THROWS_AS(summarize({}), Error);
  const Quartiles five = quartiles({5.0, 3.0, 1.0, 2.0, 4.0}), two = quartiles({1.0, 3.0}), single = quartiles({7.0});
  CHECK((five.lower == 2.0 && five.upper == 4.0));
  CHECK((two.lower == 1.5 && two.upper == 2.5));
  CHECK((single.lower == 7.0 && single.upper == 7.0));
  CHECK_THROWS_AS(quartiles({}), Error);
  CHECK(ratios_by_round({1.0, 6.0}, {2.0, 3.0}) == std::vector<double>{0.5, 2.0});
  CHECK_THROWS_AS(ratios_by_round({1.0}, {1.0, 2.0}), Error);
}

TEST_CASE("model FLOPs count the trunk's products and the attended tokens", "[bench]") {
  // 6 a weight: q, k, v (32 x 64), o (32 x 32), three of 32 x 48, the head (32 x 61).
  const double products = 6.0 * (3 * (32 * 64 + 32 * 32 + 3 * 32 * 48) + 32 * 61);
  CHECK(model_flops_per_token(kTrunk, 16) == products + 12.0 * 3 * 32 * 8.5);
  Trunk windowed = kTrunk;
  for (const std::int64_t window : {1, 5, 16, 100}) {
    windowed.window_size = window;
    double attended = 0.0;
    for (std::int64_t t = 0; t < 16; ++t) attended += static_cast<double>(std::min(t + 1, window));
    CHECK(model_flops_per_token(windowed, 16) == Approx(products + 12.0 * 3 * 32 * attended / 16));
  }
}

TEST_CASE("operators belong to the parts of a step", "[bench]") {
  CHECK(part_of("aten::mm") == Part::matrix_products);
  CHECK(part_of("aten::addmm_") == Part::matrix_products);
  CHECK(part_of("aten::_scaled_dot_product_flash_attention_for_cpu_backward") == Part::attention);
  CHECK(part_of("satformer::causal_attention_backward") == Part::attention);
  CHECK(part_of("aten::_fused_adamw_") == Part::optimizer);
  CHECK(part_of("aten::_foreach_norm") == Part::optimizer);
  CHECK(part_of("satformer::gated_value_mix_backward") == Part::fused_passes);
  CHECK(part_of("satformer::qk_norm_rope_mix") == Part::fused_passes);  // what goes before attention
  CHECK(part_of("satformer::adamw_") == Part::optimizer);
  CHECK(part_of("satformer::sum_of_squares") == Part::optimizer);
  CHECK(part_of("autograd::engine::evaluate_function: ScaledDotProductAttentionBackward0") == Part::other);
  CHECK(part_of("aten::mul") == Part::other);
  CHECK(part_of("aten::mm_of_another_kind") == Part::other);
}

TEST_CASE("the operators that are known by name exist", "[bench]") {
  for (const NamedOperator& known : named_operators()) {
    INFO(known.name);
    CHECK(c10::Dispatcher::singleton().findOp({std::string(known.name), ""}).has_value());
    CHECK(part_of(known.name) == known.part);
  }
}

TEST_CASE("operators are timed exclusively, forward and backward", "[bench]") {
  const at::Tensor a = at::ones({8, 8}).requires_grad_(), b = at::ones({8, 8});
  const at::Tensor q = at::ones({1, 2, 8, 8});
  const auto work = [&] {
    at::silu(at::matmul(a, b)).sum().backward();
    // A mask that needs a gradient keeps the flash kernels out: plain products and a softmax inside.
    at::scaled_dot_product_attention(q, q, q, at::ones({8, 8}).requires_grad_());
  };
  work();
  const Clock::time_point start = Clock::now();
  const std::vector<OperatorTime> times = time_operators(work);
  const double wall = seconds_since(start);

  double sum = 0.0;
  std::map<std::string, OperatorTime> by_name;
  for (const OperatorTime& time : times) {
    sum += time.seconds;
    CHECK(time.seconds >= 0.0);
    if (time.name != "aten::matmul" && time.name != "aten::bmm") by_name[time.name] = time;
  }
  CHECK(sum <= wall);  // nothing is counted twice
  CHECK(by_name.at("aten::mm").part == Part::matrix_products);
  CHECK(by_name.at("aten::mm").calls == 2);  // b needs no gradient
  CHECK(by_name.at("aten::silu_backward").part == Part::other);
  CHECK(by_name.at("aten::scaled_dot_product_attention").part == Part::attention);
  for (const OperatorTime& time : times) {
    if (time.name == "aten::softmax" || time.name == "aten::_softmax") CHECK(time.part == Part::attention);
    if (time.name == "aten::bmm") CHECK(time.part == Part::attention);
  }
  CHECK(by_name.contains("aten::_softmax"));

  // The callbacks are gone.
  const std::vector<OperatorTime> nothing = time_operators([] {});
  CHECK(nothing.empty());
}

TEST_CASE("the bound is the trunk's products and attention, and nothing else", "[bench]") {
  const auto replies = serve({{{"command", "start"}, {"workload", "bound"}, {"config", tiny_config()}},
                              {{"command", "round"}, {"steps", 2}},
                              {{"command", "products"}},
                              {{"command", "parts"}}});
  REQUIRE(replies.size() == 4);
  CHECK(replies[0].at("num_parameters") == 3 * (32 * 64 + 32 * 32 + 3 * 32 * 48) + 32 * 61);
  CHECK(replies[1].at("seconds").get<double>() > 0.0);
  CHECK(replies[2].at("flops_per_second").get<double>() > 0.0);
  const json& operators = replies[3].at("operators");
  // Three for each of four products a layer, and the head's, whose weight's gradient is added up over chunks.
  const auto products = calls_of_part(operators, "matrix_products");
  CHECK(products == std::map<std::string, std::int64_t>{{"aten::mm", 3 * 3 * 4 + 2}, {"aten::addmm", 1}});
  const auto attention = calls_of_part(operators, "attention");
  CHECK(attention.at("aten::scaled_dot_product_attention") == 3);
  CHECK(calls_of_part(operators, "fused_passes").empty());
  CHECK(calls_of_part(operators, "optimizer").empty());
  // The rest makes views, and autograd's bookkeeping for attention.
  const std::set<std::string> views{"aten::t",     "aten::transpose", "aten::as_strided",  "aten::narrow",
                                    "aten::slice", "aten::view",      "aten::resolve_conj"};
  for (const auto& [name, calls] : calls_of_part(operators, "other")) {
    INFO(name << " " << calls);
    CHECK((views.contains(name) || name.starts_with("autograd::engine::")));
  }
}

TEST_CASE("a training is measured with its memory and its parts", "[bench]") {
  const auto replies = serve({{{"command", "start"}, {"workload", "training"}, {"config", tiny_config()}},
                              {{"command", "round"}, {"steps", 20}},  // more than the random data's eight steps
                              {{"command", "memory"}},
                              {{"command", "parts"}}});
  REQUIRE(replies.size() == 4);
  CHECK(replies[1].at("seconds").get<double>() > 0.0);
  CHECK(replies[2].at("idle_bytes") > 0);
  CHECK(replies[2].at("peak_bytes") >= replies[2].at("idle_bytes"));
  const json& parts = replies[3].at("parts");
  CHECK(parts.size() == kNumParts);
  for (const char* part : {"matrix_products", "attention", "fused_passes", "optimizer"}) CHECK(parts.at(part) > 0.0);
}

TEST_CASE("a measuring process tells what is wrong and ends", "[bench]") {
  const json start{{"command", "start"}, {"workload", "training"}, {"config", tiny_config()}};
  json unknown = start, broken = start;
  unknown["workload"] = "inference";
  broken["config"]["model"]["config_overrides"]["num_heads"] = 5;
  const std::vector<std::pair<std::vector<json>, std::string>> cases{
      {{{{"command", "round"}, {"steps", 1}}}, "request \"round\": nothing was started"},
      {{unknown}, "workload: expected training or bound, got \"inference\""},
      {{broken}, "num_heads must divide hidden_size 32, got 5"},
      {{{{"steps", 1}}}, "command"},
      {{start, start}, "something was started already"},
      {{start, {{"command", "round"}, {"steps", 0}}}, "expected at least one step, got 0"},
      {{start, {{"command", "sleep"}}}, "unknown request \"sleep\""},
  };
  for (const auto& [requests, text] : cases) {
    const std::vector<json> replies = serve(requests, /*expected=*/false);
    REQUIRE(replies.size() == requests.size());
    CHECK_THAT(replies.back().at("error").get<std::string>(), Contains(text));
  }
}

TEST_CASE("the parent hears of a measuring process's end", "[bench]") {
  WorkerProcess echo({"/bin/cat"}, "echo");
  const json long_request{{"text", std::string(100'000, 'x')}};  // more than a buffer
  CHECK(echo.ask(long_request) == long_request);
  CHECK(echo.ask({{"a", 1}}) == json{{"a", 1}});
  CHECK_THROWS_WITH(echo.ask({{"error", "no memory"}}), "echo: no memory");

  const auto ends = [](const std::string& script) {
    WorkerProcess process({"/bin/sh", "-c", script}, "satformer");
    std::string message;
    try {
      process.ask({{"command", "memory"}});
    } catch (const Error& error) {
      message = error.what();
    }
    return message;
  };
  CHECK(ends("echo one >&2; echo two >&2; exit 3") == "satformer: its process ended with exit code 3: two");
  CHECK(ends("kill -9 $$") == "satformer: its process ended by signal 9 (out of memory?)");
  CHECK_THROWS_WITH(WorkerProcess({"/no/such/program"}, "satformer"),
                    Contains("cannot start the process of satformer: No such file"));
}
