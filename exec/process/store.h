// The key-value store where ranks meet. Names, heartbeats, losses and clocks pass through it, tensors never. It is
// c10d's TCPStore; only store_tcp.cpp and the transports know that.
//
// A Store is one connection and serves one thread. Rank 0 hosts the store unless the launcher's agent does.
//
// c10d's store does not authenticate its clients. A run with a token has its keys below a name that follows from the
// token, and a rank with another one, or with none, is refused (docs/security.md says what remains).
// Guarded by tests/exec/execute_failure_test.cpp (port in use, store lost) and, as an in-memory map, the stage
// for tests/exec/heartbeat_test.cpp and tests/exec/clock_test.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "exec/process/environment.h"

namespace c10d {
class Store;
}

namespace slipway::exec {

// Time limit to wait for another rank's compute. The heartbeat, not the limit, finds a lost rank.
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
  // Waits for the key. Throws std::runtime_error with its name when it has not appeared after `seconds`.
  virtual std::string get(const std::string& key, double seconds) = 0;
  virtual std::int64_t add(const std::string& key, std::int64_t amount) = 0;
  // Sets the key if it does not exist. Returns the value that it has afterwards.
  virtual std::string claim(const std::string& key, const std::string& value) = 0;
  virtual void forget(const std::string& key) = 0;
};

// Opens further connections to one store; rank 0's may also be its host. Thread-safe.
class StoreHost {
 public:
  // Hosts (rank 0) or finds the store, and waits at most `seconds` for its host. Throws std::runtime_error with the
  // remedy: port in use, host unknown or not reachable, another token than rank 0's.
  StoreHost(const RankEnvironment& environment, double seconds);
  ~StoreHost();

  std::unique_ptr<Store> connect() const;
  int port() const;
  // For process groups, which keep a separate connection under `prefix`.
  std::shared_ptr<c10d::Store> raw(const std::string& prefix) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Every rank adds one to `name` and waits for all. Throws with the missing number when the time is over.
void store_barrier(Store& store, const std::string& name, int world, double seconds);
// Removes a barrier that every rank has left from the store.
void forget_barrier(Store& store, const std::string& name);

}  // namespace slipway::exec
