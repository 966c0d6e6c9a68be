#pragma once
// A fixed hash of 64 bits, for orders and samples that must be the same on every machine.
#include <cstdint>

namespace satformer::data {

// A bijection of the 64-bit numbers whose every output bit depends on every input bit.
// Source: SplitMix64's step (Steele, Lea, Flood 2014) with the finaliser's constants of Stafford's variant 13.
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace satformer::data
