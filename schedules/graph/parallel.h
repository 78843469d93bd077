// Runs independent parts of one answer on all cores.
//
//   each_in_parallel(ranks, tasks, [&](std::size_t rank) { result[rank] = ...; });
//   queued_in_parallel(checks, tasks, [&](std::size_t check) { found[check] = ...; });   few, of unequal length
//
// One thread works on each item once. Neighbouring items share a thread, so that what they share stays in its cache.
// A free thread takes the next item of a queue, so the longest items come first. An exception ends its thread's work
// and is rethrown here; of several, that of the first part. `effort`: how many small things all items contain. Below
// a threshold, on one core, or in a process that has_one_thread, none is started. Results do not depend on the number of
// threads as long as items do not depend on each other. Guarded by tests/schedules/parallel_test.cpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "models/namespaces.h"

namespace slipway::schedules {

// Set once in a process that is one of as many as there are cores, each with separate work
// (scenarios/search/workers.h). Such a process was forked, perhaps beside threads, and is not to start any.
inline bool has_one_thread = false;

// Calls work(first, last) for parts of [0, count), one per thread.
template <class Work>
void parts_in_parallel(std::size_t count, std::size_t effort, const Work& work) {
  constexpr std::size_t worth_a_thread = 50000;
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t threads = std::min(count, has_one_thread || effort < worth_a_thread ? 1 : cores);
  std::vector<std::exception_ptr> failures(threads);
  const auto part = [&](std::size_t i) {
    try {
      work(count * i / threads, count * (i + 1) / threads);
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;  // joined at the end of this block
    for (std::size_t i = 1; i < threads; ++i) others.emplace_back(part, i);
    if (threads > 0) part(0);
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

template <class Work>
void each_in_parallel(std::size_t count, std::size_t effort, const Work& work) {
  parts_in_parallel(count, effort, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) work(i);
  });
}

template <class Work>
void queued_in_parallel(std::size_t count, std::size_t effort, const Work& work) {
  std::atomic<std::size_t> next = 0;
  parts_in_parallel(count, effort, [&](std::size_t, std::size_t) {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  });
}

}  // namespace slipway::schedules
