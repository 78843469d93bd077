#include "scenarios/commands/kineto/kineto_measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "models/fit/calibration.h"
#include "models/trace/statistics.h"
#include "scenarios/predict/readable.h"

namespace slipway::scenarios {
namespace {

std::string text_of(double value) { return fmt::format("{:.0f}", value); }

Measurement measurement_of(const ProductShape& shape) {
  return {"gemm",
          {{"m", text_of(shape.m)},
           {"n", text_of(shape.n)},
           {"k", text_of(shape.k)},
           {"dtype", models::name_of(shape.dtype)}}};
}
Measurement measurement_of(const AttentionCall& call) {
  return {"attention",
          {{"pass", call.backward ? "backward" : "forward"},
           {"batch_heads", text_of(call.sequences * call.heads)},
           {"s", text_of(call.tokens)},
           {"d", text_of(call.head_dim)},
           {"dtype", models::name_of(call.dtype)}}};
}
Measurement measurement_of(const Traffic& traffic) {
  return {"elementwise", {{"bytes", text_of(traffic.bytes)}, {"dtype", models::name_of(traffic.dtype)}}};
}
Measurement measurement_of(const Updated& updated) {
  return {"optimizer", {{"elements", text_of(updated.parameters)}, {"dtype", models::name_of(updated.dtype)}}};
}

class Collector {
 public:
  Collector(const std::vector<KinetoTrace>& traces, int gpus_per_node) : traces_(traces) {
    int seen = 0;
    for (const KinetoTrace& trace : traces) seen = std::max(seen, trace.devices);
    constexpr int common_node = 8;
    gpus_per_node_ = gpus_per_node > 0 ? gpus_per_node : seen > 1 ? seen : common_node;
  }

  KinetoEvidence collect() {
    for (const KinetoTrace& trace : traces_) take(trace);
    for (const auto& [name, time] : times_) evidence_.operators.push_back(time);
    std::stable_sort(evidence_.operators.begin(), evidence_.operators.end(),
                     [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
    for (Measurement& each : merged(std::move(kernels_))) evidence_.measurements.push_back(std::move(each));
    add_messages();
    add_launches();
    return std::move(evidence_);
  }

 private:
  void take(const KinetoTrace& trace) {
    std::set<std::pair<int, int>> streams;
    double end = 0;
    for (const KinetoKernel& kernel : trace.kernels) {
      streams.insert({kernel.device, kernel.stream});
      end = std::max(end, kernel.end_us());
      evidence_.kernel_s += 1e-6 * kernel.duration_us;
    }
    evidence_.kernels += std::ssize(trace.kernels);
    evidence_.streams += std::ssize(streams);
    evidence_.span_s = std::max(evidence_.span_s, 1e-6 * (end - trace.kernels.front().start_us));
    std::map<std::string, int> ordinals;
    for (const KernelUse& use : kernel_uses(trace)) {
      const std::string name = name_of(trace, use);
      OperatorTime& time = times_[name];
      time.name = name;
      ++time.calls;
      time.kernels += use.kernels;
      time.seconds += use.seconds;
      take(trace, use, name, ordinals);
    }
    take_launches(trace);
  }

  void take(const KinetoTrace& trace, const KernelUse& use, const std::string& name,
            std::map<std::string, int>& ordinals) {
    switch (use.kind) {
      case UseKind::product:
        return take_kernel(product_of(trace, use), use, name);
      case UseKind::attention:
        return take_kernel(attention_of(trace, use), use, name);
      case UseKind::element_wise: {
        const auto seen = traffic_of(trace, use);
        constexpr double least = 1 << 20;
        if (!seen.shape || seen.shape->bytes >= least) take_kernel(seen, use, name);
        return;
      }
      case UseKind::optimizer:
        return take_kernel(update_of(trace, use), use, name);
      case UseKind::message:
        return take_message(trace, use, name, ordinals);
      case UseKind::copy:
        return take_copy(trace, use);
      case UseKind::other:
        return;
    }
  }

  template <typename Shape>
  void take_kernel(const Seen<Shape>& seen, const KernelUse& use, const std::string& name) {
    const bool is_beside = use.beside_s > models::undisturbed_share * use.seconds;
    if (!seen.shape || is_beside || !(use.seconds > 0)) {
      ++evidence_.unused[name + ": " + (seen.shape ? "beside a message" : seen.why)];
      return;
    }
    Measurement measurement = measurement_of(*seen.shape);
    measurement.seconds = use.seconds;
    kernels_.push_back(std::move(measurement));
  }

  void take_copy(const KinetoTrace& trace, const KernelUse& use) {
    const KinetoKernel& kernel = trace.kernels[use.first];
    const std::string& name = trace.name_of(kernel);
    const bool down = name.find("(Pinned -> Device)") != std::string::npos,
               up = name.find("(Device -> Pinned)") != std::string::npos;
    constexpr double least = 1 << 16;  // smaller ones are waited for longer than they move
    if ((!down && !up) || kernel.bytes < least || !(use.seconds > 0)) return;
    kernels_.push_back({down ? "host-to-device" : "device-to-host", {{"bytes", text_of(kernel.bytes)}}, use.seconds});
  }

  bool is_between_nodes(const KinetoMessage& message) const {
    if (message.members > gpus_per_node_) return true;
    for (const int rank : message.ranks)
      if (rank / gpus_per_node_ != message.ranks.front() / gpus_per_node_) return true;
    return false;
  }

  void take_message(const KinetoTrace& trace, const KernelUse& use, const std::string& name,
                    std::map<std::string, int>& ordinals) {
    const Seen<MessageCall> seen = message_of(trace, use);
    if (!seen.shape || seen.shape->collective == Collective::broadcast) {
      ++evidence_.unused[name + ": " + (seen.shape ? "not fitted" : seen.why)];
      return;
    }
    const KinetoMessage& message = trace.messages[trace.kernels[use.first].message];
    std::string group = message.group;
    for (const int rank : message.ranks) group += fmt::format(" {}", rank);
    const MessageKey key{seen.shape->collective, seen.shape->bytes, seen.shape->members, group};
    MessageCalls& calls = messages_[key];
    calls.between_nodes = is_between_nodes(message);
    calls.group = message.group, calls.description = message.description;
    calls.traces.insert(&trace);
    // The n-th call of a group on each of its members is the same call.
    const int ordinal = ordinals[fmt::format("{} {} {}", group, static_cast<int>(key.collective), key.bytes)]++;
    double& shortest = calls.shortest.try_emplace(ordinal, std::numeric_limits<double>::infinity()).first->second;
    shortest = std::min(shortest, use.seconds);
  }

  void add_messages() {
    std::map<std::tuple<Collective, double, int, bool>, std::vector<double>> samples;
    for (const auto& [key, calls] : messages_) {
      std::vector<double> seconds;
      for (const auto& [ordinal, shortest] : calls.shortest) seconds.push_back(shortest);
      const bool all_members = std::ssize(calls.traces) >= key.members;
      const double time = all_members ? median(seconds) : *std::min_element(seconds.begin(), seconds.end());
      evidence_.messages.push_back({{key.collective, key.bytes, key.members},
                                    calls.group,
                                    calls.description,
                                    calls.between_nodes,
                                    static_cast<int>(calls.traces.size()),
                                    std::ssize(seconds),
                                    time});
      if (time > 0) samples[{key.collective, key.bytes, key.members, calls.between_nodes}].push_back(time);
    }
    std::stable_sort(evidence_.messages.begin(), evidence_.messages.end(),
                     [](const auto& a, const auto& b) { return a.call.bytes > b.call.bytes; });
    for (const auto& [key, seconds] : samples) {
      const auto& [collective, bytes, members, between] = key;
      const bool is_transfer = collective == Collective::send;
      Measurement measurement{is_transfer ? "transfer" : name_in(models::collective_names, collective),
                              {{"bytes", text_of(bytes)}, {"members", std::to_string(members)}},
                              median(seconds)};
      if (between) measurement.fields["link"] = "network";
      evidence_.measurements.push_back(std::move(measurement));
    }
  }

  // Launches that follow each other at once: the host does nothing else between them.
  void take_launches(const KinetoTrace& trace) {
    constexpr double longest_us = 100;
    for (std::size_t i = 1; i < trace.launches.size(); ++i) {
      const KinetoLaunch &before = trace.launches[i - 1], &next = trace.launches[i];
      const double apart = next.start_us - before.start_us;
      if (before.thread == next.thread && apart > 0 && apart < longest_us) launches_s_.push_back(1e-6 * apart);
    }
  }

  void add_launches() {
    constexpr std::size_t least = 20;
    if (launches_s_.size() < least) return;
    evidence_.launch_s = median(launches_s_);
    // In the format of most products, so that the machine has a peak for it.
    std::map<std::string, double> formats;
    for (const Measurement& each : evidence_.measurements)
      if (each.what == "gemm") formats[each.fields.at("dtype")] += each.seconds;
    const auto most = std::max_element(formats.begin(), formats.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != formats.end())
      evidence_.measurements.push_back({"launch", {{"dtype", most->first}}, evidence_.launch_s});
  }

  struct MessageKey {
    Collective collective;
    double bytes;
    int members;
    std::string group;
    auto operator<=>(const MessageKey&) const = default;
  };
  struct MessageCalls {
    std::set<const KinetoTrace*> traces;
    std::map<int, double> shortest;  // of the members given, by call
    bool between_nodes = false;
    std::string group, description;
  };

  const std::vector<KinetoTrace>& traces_;
  int gpus_per_node_ = 8;
  KinetoEvidence evidence_;
  std::map<std::string, OperatorTime> times_;
  std::vector<Measurement> kernels_;
  std::map<MessageKey, MessageCalls> messages_;
  std::vector<double> launches_s_;
};

std::string count_text(std::int64_t count) { return readable_count(static_cast<double>(count)); }

std::string operators_text(const KinetoEvidence& evidence) {
  constexpr std::size_t most_shown = 12;
  std::vector<std::vector<std::string>> rows{{"operator", "calls", "kernels", "time", "share"}};
  const auto add = [&](const OperatorTime& each) {
    rows.push_back({each.name, count_text(each.calls), count_text(each.kernels), readable_seconds(each.seconds),
                    readable_share(each.seconds / evidence.kernel_s)});
  };
  OperatorTime others;
  for (std::size_t i = 0; i < evidence.operators.size(); ++i) {
    const OperatorTime& each = evidence.operators[i];
    if (i < most_shown) {
      add(each);
      continue;
    }
    others.calls += each.calls, others.kernels += each.kernels, others.seconds += each.seconds;
  }
  if (evidence.operators.size() > most_shown) {
    others.name = fmt::format("{} others", evidence.operators.size() - most_shown);
    add(others);
  }
  return aligned_table(rows, "  ");
}

std::string messages_text(const KinetoEvidence& evidence) {
  if (evidence.messages.empty()) return "";
  constexpr std::size_t most_shown = 10;
  std::vector<std::vector<std::string>> rows{{"message", "bytes", "members", "group", "link", "calls", "time"}};
  for (std::size_t i = 0; i < std::min(most_shown, evidence.messages.size()); ++i) {
    const MessageTime& each = evidence.messages[i];
    rows.push_back({name_in(models::collective_names, each.call.collective), readable_bytes(each.call.bytes),
                    std::to_string(each.call.members),
                    each.description.empty() ? each.group : each.group + " " + each.description,
                    each.between_nodes ? "network" : "node", count_text(each.calls), readable_seconds(each.seconds)});
  }
  std::string text = "\n" + aligned_table(rows, "  ");
  if (evidence.messages.size() > most_shown)
    text += fmt::format("  and {} smaller ones\n", evidence.messages.size() - most_shown);
  const bool waits = std::any_of(evidence.messages.begin(), evidence.messages.end(),
                                 [](const MessageTime& each) { return each.traces < each.call.members; });
  if (waits)
    text += "  Of groups without the traces of all members, the shortest call counts: the others waited longer.\n";
  return text;
}

std::string unused_text(const KinetoEvidence& evidence) {
  constexpr std::size_t most_shown = 8;
  if (evidence.unused.empty()) return "";
  std::vector<std::pair<std::string, std::int64_t>> rows(evidence.unused.begin(), evidence.unused.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text = "\nSeen, but nothing is fitted to it:\n";
  for (std::size_t i = 0; i < std::min(most_shown, rows.size()); ++i)
    text += fmt::format("  {} ({})\n", rows[i].first, counted(rows[i].second, "call"));
  if (rows.size() > most_shown) text += fmt::format("  and {} others\n", rows.size() - most_shown);
  return text;
}

}  // namespace

KinetoEvidence kineto_evidence(const std::vector<KinetoTrace>& traces, int gpus_per_node) {
  return Collector(traces, gpus_per_node).collect();
}

std::string evidence_text(const std::vector<KinetoTrace>& traces, const KinetoEvidence& evidence) {
  std::string text;
  for (const KinetoTrace& trace : traces)
    text += fmt::format("{}: {}{}\n", trace.path, trace.device.empty() ? "GPU not named" : trace.device,
                        trace.has_rank ? fmt::format(", rank {} of {}", trace.rank, trace.world) : "");
  text += fmt::format("{} on {}, {}\n\n", counted(evidence.kernels, "kernel"), counted(evidence.streams, "stream"),
                      readable_seconds(evidence.span_s));
  text += operators_text(evidence) + messages_text(evidence) + unused_text(evidence);
  if (evidence.launch_s > 0)
    text += fmt::format("\nThe host launched a kernel every {}, the profiler's own work included.\n",
                        readable_seconds(evidence.launch_s));
  return text + "\n";
}

}  // namespace slipway::scenarios
