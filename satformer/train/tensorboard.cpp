#include "satformer/train/tensorboard.h"

#include <fmt/format.h>

#include <bit>
#include <boost/crc.hpp>
#include <chrono>
#include <cstring>
#include <protozero/pbf_writer.hpp>
#include <string_view>

#include "satformer/core/error.h"

namespace satformer::train {
namespace {

// Field numbers of the messages.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum SummaryField { kSummaryValue = 1 };
enum ValueField { kTag = 1, kSimpleValue = 2 };
enum SessionLogField { kStatus = 1 };
constexpr int kStatusStart = 1;

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// CRC-32C, rotated and offset, so that a CRC of data that holds CRCs stays a good one.
std::uint32_t masked_crc(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41u, 0xFFFFFFFFu, 0xFFFFFFFFu, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return std::rotr(std::uint32_t{crc.checksum()}, 15) + 0xA282EAD8u;
}

template <typename Integer>
std::string little_endian(Integer value) {
  std::string bytes(sizeof(value), '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xFF);
    value = static_cast<Integer>(value >> 8);
  }
  return bytes;
}

protozero::pbf_writer begin_event(std::string& buffer, std::int64_t step) {
  protozero::pbf_writer event(buffer);
  event.add_double(kWallTime, now());
  if (step != 0) event.add_int64(kStep, step);
  return event;
}

// The first name that is free; names sort by time, then by number, which is the order TensorBoard reads files in.
std::filesystem::path free_path(const std::filesystem::path& directory) {
  const auto seconds = static_cast<std::int64_t>(now());
  for (int number = 0;; ++number) {
    std::filesystem::path path = directory / fmt::format("events.out.tfevents.{:010}.{:04}.satformer", seconds, number);
    if (!std::filesystem::exists(path)) return path;
  }
}

}  // namespace

EventWriter::EventWriter(const std::filesystem::path& directory, std::optional<std::int64_t> restart_step) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  require(!error, "{}: cannot make the folder: {}", directory.string(), error.message());
  path_ = free_path(directory);
  file_.open(path_, std::ios::binary);
  require(file_.good(), "{}: cannot write: {}", path_.string(), std::strerror(errno));

  std::string buffer;
  begin_event(buffer, 0).add_string(kFileVersion, "brain.Event:2");
  write_record(buffer);
  if (restart_step) {
    std::string log;
    protozero::pbf_writer(log).add_enum(kStatus, kStatusStart);
    buffer.clear();
    begin_event(buffer, *restart_step).add_message(kSessionLog, log);
    write_record(buffer);
  }
}

void EventWriter::add(std::int64_t step, const std::vector<Scalar>& scalars) {
  std::string summary;
  protozero::pbf_writer summary_writer(summary);
  for (const Scalar& scalar : scalars) {
    std::string value;
    protozero::pbf_writer value_writer(value);
    value_writer.add_string(kTag, scalar.tag);
    value_writer.add_float(kSimpleValue, static_cast<float>(scalar.value));
    summary_writer.add_message(kSummaryValue, value);
  }
  std::string buffer;
  begin_event(buffer, step).add_message(kSummary, summary);
  write_record(buffer);
}

void EventWriter::write_record(const std::string& event) {
  const std::string length = little_endian(static_cast<std::uint64_t>(event.size()));
  file_ << length << little_endian(masked_crc(length)) << event << little_endian(masked_crc(event));
  file_.flush();
  require(file_.good(), "{}: cannot write: {}", path_.string(), std::strerror(errno));
}

}  // namespace satformer::train
