#pragma once
// The subcommands. Each file apps/NAME.cpp adds one to the application; commands.inc holds the one list of them
// (docs/adding_a_subcommand.md).
#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace satformer::apps {

// Called once at start; sets up flags and the callback that runs the command. A callback returns normally on success,
// throws Error on failure (exit 1) and CLI::ValidationError or std::invalid_argument on wrong usage (exit 2).
#define COMMAND(NAME) void add_##NAME(CLI::App& app);
#include "apps/commands.inc"
#undef COMMAND

// The --json FILE option, the same in every command; write_json_result does nothing when it was not given.
void add_json_option(CLI::App& command, std::string& path);
void write_json_result(const std::string& path, const nlohmann::json& result);

}  // namespace satformer::apps
