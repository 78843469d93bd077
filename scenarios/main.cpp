// The program `slipway`: see scenarios/commands/command.h.
#include <iostream>

#include "scenarios/commands/command.h"

int main(int argc, char** argv) {
  return slipway::run_slipway({argv + 1, argv + argc}, std::cout, std::cerr);
}
