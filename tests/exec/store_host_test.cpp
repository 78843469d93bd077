// How a rank finds the store, and its error for another program that listens on the port.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "exec/process/addresses.h"
#include "exec/process/store.h"

namespace slipway::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// A port of the loopback address that belongs to this socket from now on; it accepts after listen().
class Socket {
 public:
  Socket() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
  }
  ~Socket() { ::close(descriptor_); }
  void listen() { EXPECT_EQ(::listen(descriptor_, 16), 0); }
  int port() const { return port_; }

 private:
  int descriptor_ = ::socket(AF_INET, SOCK_STREAM, 0), port_ = 0;
};

RankEnvironment rank_of_two(int rank, int port) {
  RankEnvironment at;
  at.rank = rank;
  at.world = 2;
  at.store_port = port;
  return at;
}

std::string error_of(int rank, int port, double seconds) {
  try {
    const StoreHost host(rank_of_two(rank, port), seconds);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

TEST(WaitForListener, SaysWhyNobodyAcceptsAfterTheGivenTime) {
  const Socket silent;
  std::string why;
  EXPECT_GE(seconds_of([&] { why = wait_for_listener("127.0.0.1", silent.port(), 0.3); }), 0.2);
  EXPECT_EQ(why, "Connection refused");
  EXPECT_NE(wait_for_listener("no-such-host.invalid", silent.port(), 0.1), "");
}

TEST(WaitForListener, EndsWhenSomebodyBeginsToListen) {
  Socket late;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    late.listen();
  });
  EXPECT_EQ(wait_for_listener("127.0.0.1", late.port(), 60), "");
  other.join();
}

TEST(StoreHost, AnotherProgramOnThePortIsNotWaitedForAsLongAsAHostThatIsToCome) {
  Socket foreign;
  foreign.listen();
  std::string error;
  const double seconds = seconds_of([&] { error = error_of(1, foreign.port(), 6); });
  EXPECT_THAT(error, AllOf(HasSubstr("127.0.0.1:" + std::to_string(foreign.port()) +
                                     " has not answered as a store does for 3 s"),
                           HasSubstr("MASTER_PORT")));
  EXPECT_LT(seconds, 5.5);
  EXPECT_THAT(error_of(0, foreign.port(), 6), HasSubstr("is in use on this host"));
}

TEST(StoreHost, ItsOwnNameThatNobodyKnowsIsSaidAtOnce) {
  RankEnvironment at = rank_of_two(0, 0);
  at.store_host = "no-such-host.invalid";
  EXPECT_THAT([&] { const StoreHost host(at, 60); },
              testing::ThrowsMessage<std::runtime_error>(
                  AllOf(HasSubstr("rank 0 cannot host the store of this run at no-such-host.invalid"),
                        HasSubstr("check MASTER_ADDR"), Not(HasSubstr("another program")))));
}

TEST(StoreHost, AHostThatNeverComesIsNamedWithTheCause) {
  const Socket nobody;
  EXPECT_THAT(error_of(1, nobody.port(), 1), AllOf(HasSubstr("could not be reached within 1 s"),
                                                   HasSubstr("Connection refused"), Not(HasSubstr("answered"))));
}

TEST(StoreHost, ARankThatComesBeforeItsHostFindsItLater) {
  int port = 0;
  {
    const Socket free_now;
    port = free_now.port();
  }
  std::unique_ptr<StoreHost> host;
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    host = std::make_unique<StoreHost>(rank_of_two(0, port), 20);
    host->connect()->set("key", "value");
  });
  const StoreHost guest(rank_of_two(1, port), 20);
  EXPECT_EQ(guest.connect()->get("key", 20), "value");
  late.join();
}

// Lines of the kernel's table of sockets: those that listen on the port, by their address in hexadecimal.
std::vector<std::string> listening_on(int port) {
  std::vector<std::string> addresses;
  char end[8];
  std::snprintf(end, sizeof end, ":%04X", static_cast<unsigned>(port));
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line, number, local, remote, state;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream(line) >> number >> local >> remote >> state;
      if (state == "0A" && local.ends_with(end)) addresses.push_back(local.substr(0, local.size() - 5));
    }
  }
  return addresses;
}

TEST(StoreHost, TheWayToAHostHasAnAddressOfThisMachine) {
  EXPECT_EQ(address_towards("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(address_towards("127.0.0.2"), "127.0.0.1");
  EXPECT_EQ(address_towards("no-such-host.invalid"), "");
}

RankEnvironment with_token(RankEnvironment at, const std::string& token) {
  at.token = token;
  return at;
}

TEST(StoreHost, ARankWithAnotherTokenIsRefusedWithTheRemedy) {
  const StoreHost host(with_token(rank_of_two(0, 0), "of this run"), 10);
  const auto joins_with = [&](const std::string& token) {
    return [&host, token] { StoreHost(with_token(rank_of_two(1, host.port()), token), 10); };
  };
  const std::string place = "the run at 127.0.0.1:" + std::to_string(host.port());
  EXPECT_NO_THROW(joins_with("of this run")());
  EXPECT_THAT(joins_with("of another"),
              testing::ThrowsMessage<std::runtime_error>(AllOf(HasSubstr("SLIPWAY_TOKEN is not that of " + place),
                                                               HasSubstr("give all ranks of a run the same one"))));
  EXPECT_THAT(joins_with(""), testing::ThrowsMessage<std::runtime_error>(
                                  HasSubstr("SLIPWAY_TOKEN is not set here, but " + place + " has a token")));
  const StoreHost without(rank_of_two(0, 0), 10);
  EXPECT_THAT([&] { StoreHost(with_token(rank_of_two(1, without.port()), "of this run"), 10); },
              testing::ThrowsMessage<std::runtime_error>(HasSubstr("has no token")));
}

c10d::TCPStoreOptions client_of(int port) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(port);
  options.waitWorkers = false;
  return options;
}

TEST(StoreHost, TheKeysOfARunWithATokenAreFoundByThatTokenAlone) {
  const StoreHost host(with_token(rank_of_two(0, 0), "of this run"), 10);
  const StoreHost same(with_token(rank_of_two(1, host.port()), "of this run"), 10);
  host.connect()->set("key", "value");
  EXPECT_EQ(same.connect()->get("key", 5), "value");
  const auto beside = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", client_of(host.port()));
  EXPECT_FALSE(beside->check({"/key"}));
  for (const std::string& key : beside->listKeys()) EXPECT_EQ(key.find("of this run"), std::string::npos) << key;
}

TEST(StoreHost, OfRanksOnOneMachineListensOnItsLoopbackAlone) {
  RankEnvironment alone;  // any free port
  const StoreHost host(alone, 10);
  EXPECT_EQ(listening_on(host.port()), std::vector<std::string>{"0100007F"});
  const auto store = host.connect();
  store->set("key", "value");
  EXPECT_EQ(store->get("key", 1), "value");
}

}  // namespace
}  // namespace slipway::test
