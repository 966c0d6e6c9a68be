#pragma once
// How the program ends when memory runs out or nothing catches an exception: with one line and exit code 1.
#include <string_view>

namespace satformer::apps {

// To be called first in main. From then on
// - the first allocation that fails gives back a small reserve before it throws std::bad_alloc, so that unwinding,
//   destructors (those of JSON values and of LibTorch allocate) and the message have memory to work with;
// - an exception that nothing can catch (thrown in a destructor, a noexcept function of a library, a thread) ends the
//   process with `satformer: error: MESSAGE` and exit code 1.
void prepare_for_failure();

// `satformer: error: MESSAGE`, the first line of it, on standard error; allocates nothing. After it an exception that
// nothing catches ends the process in silence.
void print_error(std::string_view message);

}  // namespace satformer::apps
