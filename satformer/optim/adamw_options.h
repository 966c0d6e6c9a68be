#pragma once
// AdamW's constants (optim/adamw.h). Without torch, for readers of configurations.

namespace satformer::optim {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
};

}  // namespace satformer::optim
