// Real rank processes for tests: starts slipway-rank once per rank over loopback, kills, waits, and keeps their output
// and their times of end.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "scenarios/commands/execute/free_port.h"
#include "schedules/bundle/bundle.h"

namespace slipway::test {

inline std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void write_bundle_file(const std::string& path, const Bundle& bundle) {
  std::ofstream file(path);
  write_bundle(file, bundle);
}

struct Ended {
  int status = -1;     // exit status; 128 + signal when killed
  double seconds = 0;  // from the start of all ranks (or the last mark())
  std::string output, errors;
};

using Clock = std::chrono::steady_clock;

class RankProcesses {
 public:
  // `words` are the arguments of every rank; `folder` takes their outputs.
  RankProcesses(const std::string& program, const std::vector<std::string>& words, int ranks, std::string folder,
                std::map<std::string, std::string> more = {})
      : folder_(std::move(folder)), pids_(ranks) {
    std::filesystem::create_directories(folder_);
    std::map<std::string, std::string> common{{"MASTER_ADDR", "127.0.0.1"},
                                              {"MASTER_PORT", std::to_string(free_port())}};
    common["WORLD_SIZE"] = std::to_string(ranks);
    for (const auto& [name, value] : more) common[name] = value;
    for (int rank = 0; rank < ranks; ++rank) {
      for (const char* ending : {".out", ".err"}) std::filesystem::remove(log(rank) + ending);
      common["RANK"] = common["LOCAL_RANK"] = std::to_string(rank);
      pids_[rank] = start(program, words, common, log(rank));
    }
  }
  ~RankProcesses() {
    for (const pid_t pid : pids_) {
      if (pid > 0 && ::kill(pid, SIGKILL) == 0) waitpid(pid, nullptr, 0);
    }
  }

  void kill(int rank, int signal) { ::kill(pids_[rank], signal); }
  pid_t pid(int rank) const { return pids_[rank]; }
  // Collects a killed rank at once, so that others cannot read its end from /proc.
  void collect(int rank) {
    waitpid(pids_[rank], nullptr, 0);
    pids_[rank] = 0;
  }
  void mark() { begin_ = Clock::now(); }

  // Waits until every rank has ended or `limit_s` is over (status stays −1 then). Only then the ranks are collected, so
  // that they can see in /proc how another one ended.
  std::vector<Ended> wait(double limit_s) {
    std::vector<Ended> ended(pids_.size());
    const auto all_ended = [&] {
      return std::none_of(ended.begin(), ended.end(), [](const Ended& rank) { return rank.status == -1; });
    };
    while (!all_ended() && seconds() < limit_s) {
      for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
        if (ended[rank].status != -1) continue;
        siginfo_t info{};
        if (pids_[rank] == 0) {
          ended[rank].status = -2;  // collected before
        } else if (waitid(P_PID, static_cast<id_t>(pids_[rank]), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                   info.si_pid != 0) {
          ended[rank].status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
          ended[rank].seconds = seconds();
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
      if (ended[rank].status >= 0) collect(static_cast<int>(rank));
    }
    for (std::size_t rank = 0; rank < ended.size(); ++rank) {
      ended[rank].output = text_of_file(log(static_cast<int>(rank)) + ".out");
      ended[rank].errors = text_of_file(log(static_cast<int>(rank)) + ".err");
    }
    return ended;
  }

  // True when a rank's standard output holds `text` before `limit_s`.
  bool printed(int rank, const std::string& text, double limit_s) const {
    const auto until = Clock::now() + std::chrono::duration<double>(limit_s);
    while (Clock::now() < until) {
      if (text_of_file(log(rank) + ".out").find(text) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

 private:
  std::string log(int rank) const { return folder_ + "/log-" + std::to_string(rank); }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  static pid_t start(const std::string& program, const std::vector<std::string>& words,
                     const std::map<std::string, std::string>& environment, const std::string& log) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    for (const auto& [file, descriptor] : {std::pair{log + ".out", 1}, std::pair{log + ".err", 2}}) {
      dup2(open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), descriptor);
    }
    std::vector<char*> arguments{const_cast<char*>(program.c_str())};
    std::vector<std::string> all = words;  // a busy machine may take its time
    if (program == SLIPWAY_RANK_PROGRAM && std::find(words.begin(), words.end(), "--connect-timeout") == words.end())
      all.insert(all.end(), {"--connect-timeout", "120"});
    for (const std::string& word : all) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execv(program.c_str(), arguments.data());
    _exit(127);
  }

  std::string folder_;
  std::vector<pid_t> pids_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace slipway::test
