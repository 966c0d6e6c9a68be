#include "satformer/data/byte_source.h"

#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "satformer/core/error.h"

namespace satformer::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kInputBytes = 1 << 17;

class PlainSource : public ByteSource {
 public:
  explicit PlainSource(const fs::path& path) : path_(path), file_(std::fopen(path.c_str(), "rb")) {
    require(file_ != nullptr, "{}: cannot be opened: {}", path.string(), std::strerror(errno));
  }

  std::size_t read(std::span<char> out) override {
    const std::size_t count = std::fread(out.data(), 1, out.size(), file_.get());
    require(count == out.size() || !std::ferror(file_.get()), "{}: cannot be read at byte {}: {}", path_.string(),
            position_ + count, std::strerror(errno));
    position_ += count;
    return count;
  }

  std::uint64_t file_position() const override { return position_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  fs::path path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::uint64_t position_ = 0;
};

// What the decompressors share: a buffer of compressed bytes.
class CompressedSource : public ByteSource {
 public:
  explicit CompressedSource(const fs::path& path) : path_(path), file_(path), input_(kInputBytes) {}

  std::uint64_t file_position() const override { return file_.file_position() - available_; }

 protected:
  // Whether there are compressed bytes left, after reading more where the buffer is empty.
  bool refill() {
    if (available_ == 0) {
      next_ = 0;
      available_ = file_.read(input_);
    }
    return available_ > 0;
  }
  void consume(std::size_t count) {
    next_ += count;
    available_ -= count;
  }
  const char* input() const { return input_.data() + next_; }
  std::size_t available() const { return available_; }

  [[noreturn]] void fail_truncated(const char* kind) const {
    fail("{}: truncated: the {} stream stops at byte {} before its end; get the file again", path_.string(), kind,
         file_position());
  }
  [[noreturn]] void fail_corrupt(const char* kind, const char* reason) const {
    fail("{}: corrupt {} data near byte {}: {}; get the file again", path_.string(), kind, file_position(),
         reason != nullptr ? reason : "no reason given");
  }

 private:
  fs::path path_;
  PlainSource file_;
  std::vector<char> input_;
  std::size_t next_ = 0, available_ = 0;
};

class GzipSource : public CompressedSource {
 public:
  explicit GzipSource(const fs::path& path) : CompressedSource(path) {
    constexpr int kGzipOnly = 16;  // added to the window bits: expect gzip's header and checksum
    require(inflateInit2(&stream_, MAX_WBITS + kGzipOnly) == Z_OK, "{}: zlib does not start", path.string());
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  std::size_t read(std::span<char> out) override {
    std::size_t filled = 0;
    while (filled == 0) {
      if (!refill()) {
        if (in_member_) fail_truncated("gzip");
        return 0;
      }
      if (!in_member_) {
        inflateReset(&stream_);
        in_member_ = true;
      }
      filled = inflate_some(out);
    }
    return filled;
  }

 private:
  std::size_t inflate_some(std::span<char> out) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input()));
    stream_.avail_in = static_cast<uInt>(available());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int status = inflate(&stream_, Z_NO_FLUSH);
    consume(available() - stream_.avail_in);
    if (status == Z_STREAM_END) {
      in_member_ = false;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      fail_corrupt("gzip", stream_.msg);
    }
    return out.size() - stream_.avail_out;
  }

  z_stream stream_{};
  bool in_member_ = true;  // a file without a single member is truncated
};

class ZstdSource : public CompressedSource {
 public:
  explicit ZstdSource(const fs::path& path) : CompressedSource(path), stream_(ZSTD_createDStream()) {
    require(stream_ != nullptr, "{}: zstd does not start", path.string());
  }

  std::size_t read(std::span<char> out) override {
    while (true) {
      // At the input's end the decoder may still hold output: it is asked with no input before the end is believed.
      const bool more = refill();
      ZSTD_inBuffer in{input(), available(), 0};
      ZSTD_outBuffer decoded{out.data(), out.size(), 0};
      if (more || in_frame_) decode(in, decoded);
      consume(in.pos);
      if (decoded.pos > 0) return decoded.pos;
      if (!more) {
        if (in_frame_) fail_truncated("zstd");
        return 0;
      }
    }
  }

 private:
  void decode(ZSTD_inBuffer& in, ZSTD_outBuffer& decoded) {
    const std::size_t hint = ZSTD_decompressStream(stream_.get(), &decoded, &in);
    if (ZSTD_isError(hint)) fail_corrupt("zstd", ZSTD_getErrorName(hint));
    in_frame_ = hint != 0;
  }

  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ZSTD_DStream, Free> stream_;
  bool in_frame_ = true;  // a file without a single frame is truncated
};

}  // namespace

std::unique_ptr<ByteSource> open_byte_source(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  require(fs::exists(status), "{}: no such file", path.string());
  require(!fs::is_directory(status), "{}: is a folder; name the files in it", path.string());
  require(fs::is_regular_file(status), "{}: is no regular file; it is read twice, so a pipe or device does not do",
          path.string());
  if (path.extension() == ".gz") return std::make_unique<GzipSource>(path);
  if (path.extension() == ".zst") return std::make_unique<ZstdSource>(path);
  return std::make_unique<PlainSource>(path);
}

fs::path without_compression_suffix(const fs::path& path) {
  return path.extension() == ".gz" || path.extension() == ".zst" ? fs::path(path).replace_extension() : path;
}

}  // namespace satformer::data
