#include "exec/transport/local_transport.h"

#include <ATen/ATen.h>

#include <condition_variable>
#include <map>
#include <mutex>

namespace slipway::exec {
namespace {

// A member's contribution to a meeting: a tensor that the others may read after the mark.
struct Offer {
  at::Tensor tensor;
  DeviceQueue::Mark mark;
};
using Offers = std::vector<Offer>;  // by member

// A place where `size` threads meet, again and again.
class Meeting {
 public:
  explicit Meeting(int size) : size_(size), round_(std::make_shared<Round>(size)) {}

  // Returns all offers when all have come. Throws TransportError when a member has left or leaves meanwhile.
  std::shared_ptr<const Offers> come(int member, Offer offer) {
    std::unique_lock lock(mutex_);
    const std::shared_ptr<Round> mine = round_;
    mine->offers[member] = std::move(offer);
    if (++mine->come == size_) {
      round_ = std::make_shared<Round>(size_);
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return mine->come == size_ || left_; });
    if (mine->come < size_) throw TransportError("another rank of this process has left");
    return {mine, &mine->offers};
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    left_ = true;
    changed_.notify_all();
  }

 private:
  struct Round {
    explicit Round(int size) : offers(static_cast<std::size_t>(size)) {}
    Offers offers;
    int come = 0;
  };
  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Round> round_;
  bool left_ = false;
};

// All members of one communicator: one meeting of all, and one of each sender with its receiver.
struct LocalGroup {
  explicit LocalGroup(int size) : all(size) {}
  Meeting all;
  std::mutex mutex;
  std::map<std::pair<int, int>, Meeting> pairs;  // (from, to)
  bool left = false;

  Meeting& pair(int from, int to) {
    const std::lock_guard lock(mutex);
    Meeting& meeting = pairs.try_emplace({from, to}, 2).first->second;
    if (left) meeting.leave();
    return meeting;
  }
  void leave() {
    all.leave();
    const std::lock_guard lock(mutex);
    left = true;
    for (auto& [members, meeting] : pairs) meeting.leave();
  }
};

class LocalTransport : public Transport {
 public:
  LocalTransport(std::shared_ptr<LocalGroup> here, std::string name, int member, int size, DeviceQueue* queue)
      : here_(std::move(here)), name_(std::move(name)), member_(member), size_(size), queue_(queue) {}
  ~LocalTransport() override { here_->leave(); }

  void all_reduce(at::Tensor& tensor) override {
    guarded(name_, "all-reduce", [&] {
      const at::NoGradGuard no_grad;
      const auto wholes = meet(tensor.view({-1}));
      const at::Tensor part = sum_of_parts(*wholes, share(member_, tensor.numel()));
      const auto parts = meet(part);
      for (int from = 0; from < size_; ++from) {
        const Share at = share(from, tensor.numel());
        tensor.view({-1}).narrow(0, at.begin, at.length).copy_(tensor_of(*parts, from));
      }
      meet({});
    });
  }
  void all_gather(at::Tensor& whole, const at::Tensor& part) override {
    guarded(name_, "all-gather", [&] {
      const at::NoGradGuard no_grad;
      const auto parts = meet(part);
      const std::int64_t rows = whole.size(0) / size_;
      for (int from = 0; from < size_; ++from) whole.narrow(0, from * rows, rows).copy_(tensor_of(*parts, from));
      meet({});
    });
  }
  void reduce_scatter(at::Tensor& part, const at::Tensor& whole) override {
    guarded(name_, "reduce-scatter", [&] {
      const at::NoGradGuard no_grad;
      const auto wholes = meet(whole);
      const std::int64_t rows = whole.size(0) / size_;
      part.copy_(sum_of_parts(*wholes, {member_ * rows, rows}));
      meet({});
    });
  }
  void shift(at::Tensor& received, const at::Tensor& sent) override {
    guarded(name_, "shift", [&] {
      const at::NoGradGuard no_grad;
      const auto all = meet(sent);
      received.copy_(tensor_of(*all, (member_ + size_ - 1) % size_));
      meet({});
    });
  }
  // A member's rows begin where its numbers say, which all read first.
  void all_to_all(at::Tensor& received, const at::Tensor& sent, const std::vector<std::int64_t>& received_rows,
                  const std::vector<std::int64_t>& sent_rows) override {
    guarded(name_, "all-to-all", [&] {
      const at::NoGradGuard no_grad;
      const auto rows = meet(at::tensor(sent_rows, at::kLong));
      const auto all = meet(sent);
      std::int64_t at = 0;
      for (int from = 0; from < size_; ++from) {
        const at::Tensor& of = tensor_of(*rows, from);
        const std::int64_t first = of.narrow(0, 0, member_).sum().item<std::int64_t>();
        received.narrow(0, at, received_rows[from]).copy_(tensor_of(*all, from).narrow(0, first, received_rows[from]));
        at += received_rows[from];
      }
      meet({});
    });
  }
  void send(const at::Tensor& tensor, int member) override {
    guarded(name_, "send", [&] {
      Meeting& meeting = here_->pair(member_, member);
      meet_in(meeting, 0, tensor);
      meet_in(meeting, 0, {});
    });
  }
  void receive(at::Tensor& tensor, int member) override {
    guarded(name_, "receive", [&] {
      const at::NoGradGuard no_grad;
      Meeting& meeting = here_->pair(member, member_);
      tensor.copy_(tensor_of(*meet_in(meeting, 1, {}), 0));
      meet_in(meeting, 1, {});
    });
  }
  void barrier() override {
    guarded(name_, "barrier", [&] { meet({}); });
  }
  void shutdown() override { here_->leave(); }

 private:
  struct Share {
    std::int64_t begin = 0, length = 0;
  };
  Share share(int member, std::int64_t elements) const {
    const std::int64_t begin = elements * member / size_, end = elements * (member + 1) / size_;
    return {begin, end - begin};
  }
  static const at::Tensor& tensor_of(const Offers& offers, int member) { return offers[member].tensor; }
  // Sums the same part of all tensors, in member order.
  at::Tensor sum_of_parts(const Offers& wholes, Share at) const {
    at::Tensor sum = tensor_of(wholes, 0).narrow(0, at.begin, at.length).clone();
    for (int from = 1; from < size_; ++from) sum.add_(tensor_of(wholes, from).narrow(0, at.begin, at.length));
    return sum;
  }

  std::shared_ptr<const Offers> meet(const at::Tensor& tensor) { return meet_in(here_->all, member_, tensor); }
  std::shared_ptr<const Offers> meet_in(Meeting& meeting, int place, const at::Tensor& tensor) {
    auto offers = meeting.come(place, {tensor, queue_ ? queue_->mark() : nullptr});
    for (std::size_t other = 0; queue_ && other < offers->size(); ++other)
      if (static_cast<int>(other) != place) queue_->wait_for((*offers)[other].mark);
    return offers;
  }

  std::shared_ptr<LocalGroup> here_;
  std::string name_;
  int member_, size_;
  DeviceQueue* queue_;
};

}  // namespace

struct LocalGroups::State {
  std::mutex mutex;
  std::map<int, std::shared_ptr<LocalGroup>> groups;  // by communicator
};

LocalGroups::LocalGroups() : state_(std::make_unique<State>()) {}
LocalGroups::~LocalGroups() = default;

std::unique_ptr<Transport> LocalGroups::join(const Group& group, int rank, DeviceQueue* queue) {
  const int member = member_of(group, rank);
  const auto size = static_cast<int>(group.ranks.size());
  const std::lock_guard lock(state_->mutex);
  std::shared_ptr<LocalGroup>& here = state_->groups[group.id];
  if (!here) here = std::make_shared<LocalGroup>(size);
  return std::make_unique<LocalTransport>(here, group.name, member, size, queue);
}

}  // namespace slipway::exec
