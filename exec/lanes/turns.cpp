#include "exec/lanes/turns.h"

namespace slipway::exec {

Turns::Turn Turns::take(TurnOf kind) {
  const TurnOf other = kind == TurnOf::starts ? TurnOf::messages : TurnOf::starts;
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return held(other) == 0; });
  ++held(kind);
  return {this, kind};
}

Turns::Turn::~Turn() {
  if (turns_ == nullptr) return;
  {
    const std::lock_guard lock(turns_->mutex_);
    --turns_->held(kind_);
  }
  turns_->ended_.notify_all();
}

}  // namespace slipway::exec
