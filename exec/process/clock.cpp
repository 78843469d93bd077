#include "exec/process/clock.h"

#include <algorithm>
#include <ctime>

namespace slipway::exec {
namespace {

constexpr int exchanges_per_rank = 16;
constexpr double answer_s = 600;  // the heartbeat finds a dead partner long before

std::string key_of(const std::string& round, const char* what, int rank, int exchange) {
  return "clock/" + round + "/" + what + "/" + std::to_string(rank) + "/" + std::to_string(exchange);
}

void answer(Store& store, const std::string& round, int rank, const std::function<Nanoseconds()>& now) {
  for (int i = 0; i < exchanges_per_rank; ++i) {
    store.get(key_of(round, "ask", rank, i), answer_s);
    store.set(key_of(round, "answer", rank, i), std::to_string(now()));
    store.forget(key_of(round, "ask", rank, i));
  }
}

ClockSample ask(Store& store, const std::string& round, int rank, const std::function<Nanoseconds()>& now) {
  std::vector<ClockExchange> exchanges;
  for (int i = 0; i < exchanges_per_rank; ++i) {
    ClockExchange exchange;
    exchange.sent = now();
    store.set(key_of(round, "ask", rank, i), "");
    const std::string stamp = store.get(key_of(round, "answer", rank, i), answer_s);
    exchange.received = now();
    exchange.answered = std::stoll(stamp);
    exchanges.push_back(exchange);
    store.forget(key_of(round, "answer", rank, i));
  }
  return best_sample(exchanges);
}

}  // namespace

Nanoseconds monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<Nanoseconds>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

ClockSample best_sample(const std::vector<ClockExchange>& exchanges) {
  const auto& best = *std::min_element(exchanges.begin(), exchanges.end(), [](const auto& a, const auto& b) {
    return a.received - a.sent < b.received - b.sent;
  });
  const Nanoseconds middle = best.sent + (best.received - best.sent) / 2;
  return {middle, best.answered - middle};
}

Nanoseconds on_rank0(Nanoseconds stamp, const std::vector<ClockSample>& samples) {
  if (samples.empty()) return stamp;
  const ClockSample &first = samples.front(), &last = samples.back();
  if (first.at == last.at) return stamp + first.offset;
  const double share = static_cast<double>(stamp - first.at) / static_cast<double>(last.at - first.at);
  const double drift = share * static_cast<double>(last.offset - first.offset);
  return stamp + first.offset + static_cast<Nanoseconds>(drift);
}

std::vector<ClockSample> exchange_clocks(Store& store, const std::string& round, int rank,
                                         const std::vector<int>& foreign, const std::function<Nanoseconds()>& now) {
  if (rank == 0) {
    for (const int other : foreign) answer(store, round, other, now);
    return {};
  }
  if (std::find(foreign.begin(), foreign.end(), rank) == foreign.end()) return {};
  return {ask(store, round, rank, now)};
}

}  // namespace slipway::exec
