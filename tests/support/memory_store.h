// The ranks' store as a map in this process, for tests of what ranks agree on through it. `lose()` ends the process
// that hosts it, `stall()` stops that process.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "exec/process/store.h"

namespace slipway::test {

class MemoryStore {
 public:
  std::unique_ptr<Store> connect() { return std::make_unique<Connection>(*this); }
  void lose() {
    const std::lock_guard lock(mutex_);
    lost_ = true;
    changed_.notify_all();
  }
  void stall() { set_stalled(true); }
  void go_on() { set_stalled(false); }

 private:
  class Connection : public Store {
   public:
    explicit Connection(MemoryStore& map) : map_(map) {}
    void set(const std::string& key, const std::string& value) override {
      const std::unique_lock lock = map_.lock();
      map_.values_[key] = value;
      map_.changed_.notify_all();
    }
    bool has(const std::string& key) override {
      const std::unique_lock lock = map_.lock();
      return map_.values_.count(key) > 0;
    }
    std::string get(const std::string& key, double seconds) override {
      std::unique_lock lock = map_.lock();
      const auto there = [&] { return map_.lost_ || map_.values_.count(key) > 0; };
      if (!map_.changed_.wait_for(lock, std::chrono::duration<double>(seconds), there)) {
        throw std::runtime_error("nothing was heard of '" + key + "'");
      }
      map_.check();
      return map_.values_.at(key);
    }
    std::int64_t add(const std::string& key, std::int64_t amount) override {
      const std::unique_lock lock = map_.lock();
      std::string& value = map_.values_[key];
      value = std::to_string((value.empty() ? 0 : std::stoll(value)) + amount);
      map_.changed_.notify_all();
      return std::stoll(value);
    }
    std::string claim(const std::string& key, const std::string& value) override {
      const std::unique_lock lock = map_.lock();
      map_.changed_.notify_all();
      return map_.values_.emplace(key, value).first->second;
    }
    void forget(const std::string& key) override {
      const std::unique_lock lock = map_.lock();
      map_.values_.erase(key);
    }

   private:
    MemoryStore& map_;
  };

  void check() const {
    if (lost_) throw StoreLost("connection reset by peer");
  }
  std::unique_lock<std::mutex> lock() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !stalled_; });
    check();
    return lock;
  }
  void set_stalled(bool stalled) {
    const std::lock_guard lock(mutex_);
    stalled_ = stalled;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  bool lost_ = false, stalled_ = false;
};

}  // namespace slipway::test
