// Forked children of this process and the pipes to them: simulations (sim/isolate.h), workers of a search
// (scenarios/search/workers.h) and ranks (scenarios/commands/execute/launch.h). Plain POSIX; system calls that a signal
// interrupts go on.
//
//   fork_child(work) ─┬─► child: work(), then its end without destructors    killed when the parent ends, however it ends
//                     └─► parent: its number ──► reap() ──► status ──► signal_text()
//
// An owned file or child ends with its owner, so nothing is left of what could not be started.
//
// Guarded by tests/schedules/child_process_test.cpp.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "models/namespaces.h"

namespace slipway::schedules {

// A file of this process, by its number.
class OwnedFile {
 public:
  explicit OwnedFile(int file = -1) : file_(file) {}
  OwnedFile(OwnedFile&& other) noexcept : file_(other.release()) {}
  OwnedFile& operator=(OwnedFile&& other) noexcept;
  ~OwnedFile() { close(); }
  operator int() const { return file_; }
  void close();
  int release() { return std::exchange(file_, -1); }

 private:
  int file_;
};

struct Pipe {
  OwnedFile read, write;
};
// Both ends close on exec. `purpose` begins the error: "cannot start a worker". Throws std::system_error.
Pipe open_pipe(const std::string& purpose);

// `work` throws nothing. Where it returns, the child's exit status is 0. Throws std::system_error.
pid_t fork_child(const std::string& purpose, const std::function<void()>& work);

// A child that nobody needs without its owner: it is killed then, unless somebody waited for its end.
class OwnedChild {
 public:
  explicit OwnedChild(pid_t id = -1) : id_(id) {}
  OwnedChild(OwnedChild&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  OwnedChild& operator=(OwnedChild&&) = delete;
  ~OwnedChild();
  pid_t id() const { return id_; }
  bool has_ended() const;  // and nobody waited for it yet
  int wait();              // as reap

 private:
  pid_t id_;
};
// For a child whose parent answers interrupts: Ctrl-C and job schedulers send SIGINT and SIGTERM to the whole group.
void leave_interrupts_to_parent();

// False: the reader is gone; no SIGPIPE comes of it.
bool write_all(int file, const void* from, std::size_t size);
// False: the writer is gone before that.
bool read_all(int file, void* to, std::size_t size);
// Appends what is there, waiting for some. False: the writer is gone, or a file that does not block has nothing.
bool read_some(int file, std::string& text);

// Waits for the child's end. The status is that of waitpid.
int reap(pid_t child);
// "signal 9 (Killed)"
std::string signal_text(int signal);

}  // namespace slipway::schedules
