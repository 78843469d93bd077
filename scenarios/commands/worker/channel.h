// The two pipes between a worker and its caller: lines of JSON both ways. No other code of the process, nor of its children,
// reads the first or writes to the second. Children may ask too, one at a time.
// Guarded by tests/python/worker_test.py.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "sim/isolate.h"

namespace slipway::scenarios {

class Channel {
 public:
  Channel();  // takes standard input and output; both are /dev/null from then on
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Without its end; nothing at the end of the input.
  std::optional<std::string> read_line();
  void write_line(std::string line);
  // Writes {"id", "ask": number, "shape"} and returns the caller's answer. Threads and children may call it. Throws
  // std::runtime_error where the caller is gone.
  nlohmann::json ask(const nlohmann::json& id, const nlohmann::json& shape);

 private:
  struct Turn;
  Turn& turn() const;

  int in_ = -1, out_ = -1;
  std::string read_;          // beyond the last line
  sim::SharedMemory shared_;  // a Turn
};

}  // namespace slipway::scenarios
