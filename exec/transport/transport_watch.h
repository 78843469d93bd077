// Operations that run on a device may break when no call is there to throw: a lane then waits for the device, and the
// device for the peer. So a thread polls the transports once a second.
// Guarded by tests/exec/transport_watch_test.cpp.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "exec/transport/transport.h"

namespace slipway::exec {

class TransportWatch {
 public:
  // `names`: of the communicators, by place. Transports may be null, and outlive the watch. `broke` is called once, on
  // the watch's thread, while a TransportError is in flight.
  TransportWatch(const std::vector<std::unique_ptr<Transport>>& transports, std::vector<std::string> names,
                 std::function<void()> broke, std::chrono::milliseconds period = std::chrono::seconds(1));
  ~TransportWatch();
  TransportWatch(const TransportWatch&) = delete;
  TransportWatch& operator=(const TransportWatch&) = delete;

 private:
  void watch();
  void look() const;  // throws TransportError

  const std::vector<std::unique_ptr<Transport>>& transports_;
  const std::vector<std::string> names_;
  const std::function<void()> broke_;
  const std::chrono::milliseconds period_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace slipway::exec
