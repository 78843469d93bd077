#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>

#include <c10/util/hash.h>
#include <torch/csrc/distributed/c10d/exception.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>

#include "exec/process/addresses.h"
#include "exec/process/store.h"
#include "exec/process/within.h"

// c10d looks up the host name of every address that it connects to or accepts, only for messages. Meanwhile its store
// serves no rank. Where no DNS server answers, a look-up takes 5 s and more per connection, as long as a lost rank's
// silence. This program's own getnameinfo takes precedence over libc's and returns the number.
extern "C" int getnameinfo(const sockaddr* address, socklen_t address_length, char* host, socklen_t host_length,
                           char* service, socklen_t service_length, int flags) {
  using Function = int(const sockaddr*, socklen_t, char*, socklen_t, char*, socklen_t, int);
  static Function* const original = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "getnameinfo"));
  return original(address, address_length, host, host_length, service, service_length, flags | NI_NUMERICHOST);
}

namespace slipway::exec {

namespace {

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

// The first line of a c10 message; the rest is a stack of this program's callers.
std::string first_line(const char* message) {
  const std::string text = message;
  return text.substr(0, text.find('\n'));
}

// Turns connection errors into StoreLost.
template <class Operation>
auto guarded(Operation operation) {
  try {
    return operation();
  } catch (const c10::Error& error) {
    throw StoreLost(first_line(error.what_without_backtrace()));
  }
}

class TcpConnection : public Store {
 public:
  TcpConnection(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}

  void set(const std::string& key, const std::string& value) override {
    guarded([&] { store_->set(key, value); });
  }
  bool has(const std::string& key) override {
    return guarded([&] { return store_->check({key}); });
  }
  std::string get(const std::string& key, double seconds) override {
    return guarded([&] {
      try {
        store_->wait({key}, milliseconds(seconds));
      } catch (const c10::DistStoreError&) {  // time-out
        throw std::runtime_error("nothing was heard of '" + key + "' for " + std::to_string(static_cast<int>(seconds)) +
                                 " s");
      }
      return store_->get_to_str(key);
    });
  }
  std::int64_t add(const std::string& key, std::int64_t amount) override {
    return guarded([&] { return store_->add(key, amount); });
  }
  std::string claim(const std::string& key, const std::string& value) override {
    return guarded([&] { return store_->compareSet(key, "", value); });
  }
  void forget(const std::string& key) override {
    guarded([&] { return store_->deleteKey(key); });
  }

 private:
  c10::intrusive_ptr<c10d::Store> store_;
};

constexpr double late_s = 0.3;

// A program listens there and does not answer.
struct Silent : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// It is the store of a run to which this rank does not belong.
struct OtherToken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string opening_error(const RankEnvironment& at, double seconds, const std::string& cause) {
  const std::string place = at.store_host + ":" + std::to_string(at.store_port);
  if (at.hosts_store() && cause.find("EADDRINUSE") != std::string::npos) {
    return "port " + std::to_string(at.store_port) +
           " is in use on this host (by another run?), so rank 0 cannot host the store of this run; set "
           "MASTER_PORT to a free port for all ranks";
  }
  if (at.hosts_store()) return "rank 0 cannot host the store of this run at " + place + ": " + cause;
  return "the store of this run at " + place + " (" +
         (at.agent_store ? "hosted by the launcher's agent" : "hosted by rank 0") + ") could not be reached within " +
         std::to_string(static_cast<int>(seconds)) +
         " s; check that rank 0 runs, and MASTER_ADDR and MASTER_PORT: " + cause;
}

// One for each `use`; the token cannot be found from it.
std::string fingerprint(const std::string& token, const std::string& use) {
  return token.empty() ? "none" : c10::sha1(use + '\n' + token).str();
}

std::string other_token(const RankEnvironment& at, const std::string& of_run) {
  const std::string run = "the run at " + at.store_host + ":" + std::to_string(at.store_port);
  const std::string none = fingerprint("", "");
  const std::string what = of_run == none     ? "SLIPWAY_TOKEN is set here, but " + run + " has no token"
                           : at.token.empty() ? "SLIPWAY_TOKEN is not set here, but " + run + " has a token"
                                              : "SLIPWAY_TOKEN is not that of " + run;
  return what + "; give all ranks of a run the same one, and each run a MASTER_PORT of its own";
}

}  // namespace

struct StoreHost::State {
  std::string host, prefix;
  double seconds = 0;
  int port = 0;
  c10::intrusive_ptr<c10d::TCPStore> first;  // the server lives in rank 0's

  c10::intrusive_ptr<c10d::TCPStore> open(bool hosts) const {
    c10d::TCPStoreOptions options;
    int own_port = port;
    if (hosts) options.masterListenFd = socket_on_loopback(host, own_port);
    options.port = static_cast<std::uint16_t>(own_port);
    options.isServer = hosts;
    options.waitWorkers = false;
    options.timeout = milliseconds(seconds);
    return c10::make_intrusive<c10d::TCPStore>(host, options);
  }
  c10::intrusive_ptr<c10d::TCPStore> open_within(double limit_s, bool hosts) const;
  void compare_tokens(const RankEnvironment& at) const;
};

// A foreign program may listen on the store's port and never answer.
c10::intrusive_ptr<c10d::TCPStore> StoreHost::State::open_within(double limit_s, bool hosts) const {
  const auto store = within(limit_s, [copy = *this, hosts] { return copy.open(hosts); });
  if (store) return *store;
  throw Silent(
      "what listens at " + host + ":" + std::to_string(port) + " has not answered as a store does for " +
      std::to_string(static_cast<int>(limit_s)) + " s: " +
      (hosts
           ? "MASTER_ADDR is not this machine, where rank 0 runs and hosts the store, or another program has the port; "
             "set MASTER_ADDR to this machine's name or address, and MASTER_PORT to a free port, for all ranks"
           : "another program has the port, or rank 0 is stopped; check rank 0, and set MASTER_PORT to a free "
             "port for all ranks"));
}

// Rank 0 says which token the run has. A store whose host is stopped never answers.
void StoreHost::State::compare_tokens(const RankEnvironment& at) const {
  const std::string mine = fingerprint(at.token, "run");
  const auto of_run = within(seconds + late_s, [store = first, mine, at, limit = seconds]() -> std::string {
    const auto beside = c10::make_intrusive<c10d::PrefixStore>(at.store_prefix, store);
    if (at.rank == 0) {
      beside->set("token", mine);
      return mine;
    }
    try {
      beside->wait({"token"}, milliseconds(limit));
    } catch (const c10::DistStoreError&) {  // time-out
      throw std::runtime_error("rank 0 did not join the run within " + std::to_string(static_cast<int>(limit)) +
                               " s; check that it was started, or give --connect-timeout more");
    }
    return beside->get_to_str("token");
  });
  if (!of_run)
    throw std::runtime_error("it was reached, but has not answered for " + std::to_string(static_cast<int>(seconds)) +
                             " s: its host is stopped or lost; check rank 0");
  if (*of_run != mine) throw OtherToken(other_token(at, *of_run));
}

StoreHost::StoreHost(const RankEnvironment& at, double seconds) : state_(std::make_unique<State>()) {
  // Turns off c10d's own connection warnings, because the errors here are complete. It is set once, because ranks that
  // share a process arrive here at the same time.
  [[maybe_unused]] static const int level = FLAGS_caffe2_log_level = 3;
  constexpr double answering_share = 0.5;  // share of the time for its host to come
  state_->host = at.store_host;
  state_->port = at.store_port;
  state_->prefix = at.store_prefix;
  if (!at.token.empty()) state_->prefix.append("/").append(fingerprint(at.token, "keys"));
  state_->seconds = seconds;
  try {
    if (at.hosts_store()) {
      const auto why = within(seconds, [host = at.store_host] { return why_not_found(host); });
      if (!why || !why->empty())
        throw std::runtime_error((why ? *why : "no answer to the look-up of its name") + "; check MASTER_ADDR");
    } else {
      const auto why = within(seconds + late_s, [host = at.store_host, port = at.store_port, seconds] {
        return wait_for_listener(host, port, seconds);
      });
      if (!why || !why->empty()) throw std::runtime_error(why ? *why : "no answer to the look-up of its name");
    }
    state_->first = state_->open_within(at.hosts_store() ? seconds : answering_share * seconds, at.hosts_store());
    state_->compare_tokens(at);
  } catch (const Silent&) {
    throw;
  } catch (const OtherToken&) {
    throw;
  } catch (const std::system_error& error) {  // of a thread; its text is that of errno alone
    throw std::runtime_error(std::string("cannot start a thread to reach the store of this run: ") + error.what() +
                             "; raise the limits of memory and threads (ulimit -v, ulimit -u)");
  } catch (const c10::Error& error) {
    throw std::runtime_error(opening_error(at, seconds, first_line(error.what_without_backtrace())));
  } catch (const std::exception& error) {
    throw std::runtime_error(opening_error(at, seconds, error.what()));
  }
  state_->port = state_->first->getPort();
}

StoreHost::~StoreHost() = default;

int StoreHost::port() const { return state_->port; }

std::unique_ptr<Store> StoreHost::connect() const {
  return std::make_unique<TcpConnection>(
      c10::make_intrusive<c10d::PrefixStore>(state_->prefix, state_->open_within(state_->seconds, false)));
}

std::shared_ptr<c10d::Store> StoreHost::raw(const std::string& prefix) const {
  auto store = c10::make_intrusive<c10d::PrefixStore>(state_->prefix + "/" + prefix,
                                                      state_->open_within(state_->seconds, false));
  c10d::Store* plain = store.get();
  return {plain, [store](c10d::Store*) mutable { store.reset(); }};
}

}  // namespace slipway::exec
