// The key-value store where ranks meet: names, heartbeats, losses and clocks pass through it, tensors
// never do. c10d's TCPStore behind it; nothing but store_tcp.cpp and the transports know that.
//
// A Store is one connection and serves one thread. Rank 0 hosts the store unless the launcher's agent does.
// Guarded by tests/execute_failure_test.cpp (port in use, store lost) and, as an in-memory map, the stage
// for tests/heartbeat_test.cpp and tests/clock_test.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "exec/environment.h"

namespace c10d {
class Store;
}

namespace slipway {

// For waiting on another rank: as long as its compute takes. That it is lost is the heartbeat's business.
constexpr double while_alive_s = 24 * 3600.0;

// The connection to the store is gone: its host ended or cannot be reached any more.
struct StoreLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  // All of these throw StoreLost when the connection is gone.
  virtual bool has(const std::string& key) = 0;
  // Waits for the key; throws std::runtime_error naming it when it has not appeared after `seconds`.
  virtual std::string get(const std::string& key, double seconds) = 0;
  virtual std::int64_t add(const std::string& key, std::int64_t amount) = 0;
  // Sets the key if it does not exist; returns the value that it has afterwards.
  virtual std::string claim(const std::string& key, const std::string& value) = 0;
  virtual void forget(const std::string& key) = 0;
};

// Opens further connections to one store; rank 0's may also be its host. Thread-safe.
class StoreHost {
 public:
  // Hosts (rank 0) or finds the store, waiting at most `seconds` for its host.
  // Throws std::runtime_error: port in use, host unknown or not reachable, each with the remedy.
  StoreHost(const RankEnvironment& environment, double seconds);
  ~StoreHost();

  std::unique_ptr<Store> connect() const;
  int port() const;
  // For process groups, which keep a connection of their own under `prefix`.
  std::shared_ptr<c10d::Store> raw(const std::string& prefix) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// "barrier": every rank adds one to `name` and waits for all; names the missing number when it gives up.
void store_barrier(Store& store, const std::string& name, int world, double seconds);

}  // namespace slipway
