#include "exec/process/process.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace slipway::exec {
namespace {

std::string first_line_of(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string link_target_of(const char* path) {
  char target[256];
  const ssize_t length = readlink(path, target, sizeof target);
  return length < 0 ? std::string() : std::string(target, static_cast<std::size_t>(length));
}

// Fields of /proc/<pid>/stat (proc(5)), counted from 1 as there. The name (2) may hold spaces and brackets.
struct ProcessStat {
  char state = 0;             // field 3
  long long start_ticks = 0;  // field 22
  int exit_code = 0;          // field 52
};

std::optional<ProcessStat> stat_of(long pid) {
  const std::string line = first_line_of(("/proc/" + std::to_string(pid) + "/stat").c_str());
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(line.substr(name_end + 1));
  ProcessStat stat;
  rest >> stat.state;
  std::string field;
  for (int number = 4; number <= 52 && rest >> field; ++number) {
    if (number == 22) stat.start_ticks = std::stoll(field);
    if (number == 52) stat.exit_code = std::stoi(field);
  }
  return stat;
}

}  // namespace

ProcessIdentity this_process() {
  ProcessIdentity self;
  char name[256] = "unknown";
  gethostname(name, sizeof name - 1);
  self.host = name;
  self.boot_id = first_line_of("/proc/sys/kernel/random/boot_id");
  self.pid_namespace = link_target_of("/proc/self/ns/pid");
  self.pid = getpid();
  if (const auto stat = stat_of(self.pid)) self.start_ticks = stat->start_ticks;
  return self;
}

std::string to_text(const ProcessIdentity& process) {
  const auto word = [](const std::string& text) { return text.empty() ? std::string("-") : text; };
  std::ostringstream out;
  out << word(process.host) << ' ' << word(process.boot_id) << ' ' << word(process.pid_namespace) << ' ' << process.pid
      << ' ' << process.start_ticks;
  return out.str();
}

ProcessIdentity process_from_text(const std::string& text) {
  ProcessIdentity process;
  std::istringstream in(text);
  if (!(in >> process.host >> process.boot_id >> process.pid_namespace >> process.pid >> process.start_ticks)) {
    throw std::runtime_error("not a process identity: " + text);
  }
  return process;
}

bool same_clock(const ProcessIdentity& a, const ProcessIdentity& b) {
  return !a.boot_id.empty() && a.boot_id != "-" && a.boot_id == b.boot_id;
}

bool same_host(const ProcessIdentity& a, const ProcessIdentity& b) { return same_clock(a, b) && a.host == b.host; }

bool visible(const ProcessIdentity& a, const ProcessIdentity& b) {
  return same_clock(a, b) && !a.pid_namespace.empty() && a.pid_namespace == b.pid_namespace;
}

std::optional<std::string> cause_of_end(const ProcessIdentity& process) {
  const auto stat = stat_of(process.pid);
  if (!stat || stat->start_ticks != process.start_ticks) return "killed or ended without a report";
  if (stat->state != 'Z' && stat->state != 'X') return std::nullopt;
  const int code = stat->exit_code;
  if (WIFSIGNALED(code)) return "killed by signal " + std::to_string(WTERMSIG(code));
  return "ended with exit status " + std::to_string(WEXITSTATUS(code));
}

bool is_stopped(const ProcessIdentity& process) {
  const auto stat = stat_of(process.pid);
  return stat && stat->start_ticks == process.start_ticks && (stat->state == 'T' || stat->state == 't');
}

int descriptor_of(const ProcessIdentity& process) {
#ifdef SYS_pidfd_open
  return static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0));
#else
  return -1;
#endif
}

double age_of(const ProcessIdentity& process) {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double started = static_cast<double>(process.start_ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 - started;
}

std::string describe(const ProcessIdentity& process) {
  return "process " + std::to_string(process.pid) + " on host " + process.host;
}

}  // namespace slipway::exec
