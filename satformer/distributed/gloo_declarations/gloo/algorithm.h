#pragma once
// Empty: see context.h.
