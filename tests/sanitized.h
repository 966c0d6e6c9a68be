#pragma once
// Whether the tests and what they start are compiled with a sanitizer: it holds freed memory back, needs the address
// space for its shadow and descriptors to look at memory, so limits and growth of these mean nothing then.

namespace satformer::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace satformer::testing
