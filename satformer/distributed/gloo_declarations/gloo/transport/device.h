#pragma once
// See context.h.
#include <cstddef>
#include <cstdint>
#include <memory>

namespace gloo::transport {

class Device;
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};

}  // namespace gloo::transport
