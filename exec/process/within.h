// A time limit for calls that have none: c10d's store waits for ever for the answer of a stopped process.
//
//   within(5, [store] { return store->add("left", 1); })     the result, or nothing after five seconds
//
// After the limit the call continues in its thread, which is left behind. So it must own what it uses, or the process
// must end. Plain C++, no LibTorch. Guarded by tests/exec/within_test.cpp.
#pragma once

#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "models/namespaces.h"

namespace slipway::exec {

// Throws what `operation` throws within the limit.
template <class Operation>
auto within(double seconds, Operation operation) -> std::optional<decltype(operation())> {
  std::promise<decltype(operation())> promise;
  auto result = promise.get_future();
  std::thread([promise = std::move(promise), operation = std::move(operation)]() mutable {
    try {
      promise.set_value(operation());
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
  }).detach();
  if (result.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::timeout) return std::nullopt;
  return result.get();
}

}  // namespace slipway::exec
