#include "exec/transport/transport_watch.h"

namespace slipway::exec {

TransportWatch::TransportWatch(const std::vector<std::unique_ptr<Transport>>& transports,
                               std::vector<std::string> names, std::function<void()> broke,
                               std::chrono::milliseconds period)
    : transports_(transports), names_(std::move(names)), broke_(std::move(broke)), period_(period), thread_([this] {
        watch();
      }) {}

TransportWatch::~TransportWatch() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void TransportWatch::watch() {
  try {
    for (std::unique_lock lock(mutex_); !ended_.wait_for(lock, period_, [this] { return over_; });) look();
  } catch (const TransportError&) {
    broke_();
  }
}

void TransportWatch::look() const {
  for (std::size_t i = 0; i < transports_.size(); ++i) {
    const std::string why = transports_[i] ? transports_[i]->broken() : "";
    if (!why.empty()) throw TransportError("communicator " + names_[i] + " broke: " + why);
  }
}

}  // namespace slipway::exec
