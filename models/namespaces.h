// One namespace for each top-level folder. Each sees the names of the folders that it may include:
//
//   models ◄── schedules ◄── { sim, exec } ◄── scenarios        tests see all of them
//
// Headers that include no other header of this project include this one, so every file has it.
#pragma once

namespace slipway {

namespace models {}

namespace schedules {
using namespace models;
}

namespace sim {
using namespace models;
using namespace schedules;
}  // namespace sim

namespace exec {
using namespace models;
using namespace schedules;
}  // namespace exec

namespace scenarios {
using namespace models;
using namespace schedules;
using namespace sim;
using namespace exec;
}  // namespace scenarios

namespace test {
using namespace models;
using namespace schedules;
using namespace sim;
using namespace exec;
using namespace scenarios;
}  // namespace test

}  // namespace slipway
