// A device with queues, made of threads: every lane's queue is a thread that runs one thing after the other, behind the
// host. It can be held, to observe the host meanwhile.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "exec/lanes/device_queue.h"
#include "exec/process/clock.h"

namespace slipway::test {

class ThreadDevice : public DeviceQueue {
 public:
  ~ThreadDevice() override {
    for (auto& [host, queue] : queues_) queue->close();
    for (auto& [host, queue] : queues_) queue->thread.join();
  }

  void begin_lane() override {
    const std::lock_guard lock(mutex_);
    auto& queue = queues_[std::this_thread::get_id()];
    queue = std::make_unique<Queue>();
    queue->thread = std::thread([this, q = queue.get()] { q->work(held_); });
  }
  Mark mark() override {
    auto mark = std::make_shared<Event>();
    start([mark] {
      mark->at_ns = monotonic_ns();
      mark->reached = true;
      mark->reached.notify_all();
    });
    return mark;
  }
  void wait_for(const Mark& mark) override {
    start([event = event_of(mark)] { event->reached.wait(false); });
  }
  void finish(const Mark& mark) override { event_of(mark)->reached.wait(false); }
  std::vector<std::int64_t> times_ns(const std::vector<Mark>& marks) override {
    std::vector<std::int64_t> times;
    for (const Mark& mark : marks) times.push_back(event_of(mark)->at_ns);
    return times;
  }

  // Work of this thread's lane.
  void start(std::function<void()> work) { own_queue().add(std::move(work)); }
  void hold() { held_ = true; }
  void release() {
    held_ = false;
    held_.notify_all();
  }

 private:
  struct Event {
    std::atomic<bool> reached{false};
    std::int64_t at_ns = 0;
  };
  struct Queue {
    std::thread thread;
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> items;
    bool closed = false;

    void add(std::function<void()> item) {
      const std::lock_guard lock(mutex);
      items.push_back(std::move(item));
      changed.notify_one();
    }
    void close() {
      const std::lock_guard lock(mutex);
      closed = true;
      changed.notify_one();
    }
    void work(const std::atomic<bool>& held) {
      for (;;) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return closed || !items.empty(); });
        if (items.empty()) return;
        const auto item = std::move(items.front());
        items.pop_front();
        lock.unlock();
        held.wait(true);
        item();
      }
    }
  };
  static std::shared_ptr<Event> event_of(const Mark& mark) { return std::static_pointer_cast<Event>(mark); }
  Queue& own_queue() {
    const std::lock_guard lock(mutex_);
    return *queues_.at(std::this_thread::get_id());
  }

  std::mutex mutex_;
  std::map<std::thread::id, std::unique_ptr<Queue>> queues_;  // by the host's thread
  std::atomic<bool> held_{false};
};

}  // namespace slipway::test
