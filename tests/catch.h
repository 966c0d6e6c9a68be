#pragma once
// The one way to include Catch2: after torch, whose c10 defines CHECK. Serves Catch2 2.13 and 3.
#ifdef CHECK
#undef CHECK
#endif
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
