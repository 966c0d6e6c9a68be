#pragma once
// TensorBoard event files, as the `tensorboard` package reads them: records of
//   u64 length, masked CRC-32C of it, an Event message (protocol buffer), masked CRC-32C of the message.
// Source: the message definitions event.proto and summary.proto of tensorflow/tensorboard.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace satformer::train {

struct Scalar {
  std::string tag;  // "train/loss"
  double value = 0.0;
};

class EventWriter {
 public:
  // Opens a new event file in `directory` (made when missing). `restart_step`: this file continues a run, and events
  // of earlier files from that step on no longer count (TensorBoard drops them).
  explicit EventWriter(const std::filesystem::path& directory, std::optional<std::int64_t> restart_step = {});

  void add(std::int64_t step, const std::vector<Scalar>& scalars);
  const std::filesystem::path& path() const { return path_; }

 private:
  void write_record(const std::string& event);

  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace satformer::train
