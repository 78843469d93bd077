#include "scenarios/files/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "exec/run/whole_file.h"

namespace slipway::scenarios {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const std::string& reason, const std::string& remedy) {
  throw std::runtime_error("cannot write " + path + ": " + reason + "; " + remedy);
}

constexpr const char* other_file = "name a path in a folder that exists and is writable";

void refuse_folder(const std::string& path) {
  std::error_code ignored;
  if (path.empty()) fail("''", "the path is empty", "name a file");
  if (fs::is_directory(path, ignored)) fail(path, "it is a folder", "name a file in it");
  if (path.ends_with('/')) fail(path, "a path that ends in / is a folder's", "name a file");
}

// True for a path that is written to, not replaced. Paths below /dev and /proc (/dev/stdout, /dev/fd/3) stand for an
// open file, even where that is a regular one.
bool is_written_directly(const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (!fs::exists(status)) return false;
  const std::string whole = fs::absolute(path).lexically_normal().string();
  return !fs::is_regular_file(status) || whole.starts_with("/dev/") || whole.starts_with("/proc/");
}

// The path behind all symbolic links, even where the last one leads to a file that does not exist yet.
std::string target_of(const std::string& path) {
  constexpr int most_links = 40;  // Linux's limit
  fs::path target = path;
  std::error_code ignored;
  for (int links = 0; fs::is_symlink(fs::symlink_status(target, ignored)); ++links) {
    if (links == most_links) fail(path, std::strerror(ELOOP), "correct the symbolic links");
    target = target.parent_path() / fs::read_symlink(target);
  }
  return target.string();
}

// The rights that a file at `target` has, or that a new one gets.
mode_t rights_of(const std::string& target) {
  struct stat status {};
  if (::stat(target.c_str(), &status) == 0) return status.st_mode & 07777;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

// A new empty file beside `target`. Its name cannot be guessed, so no link can be put there before.
int named_beside(const std::string& target, std::string& name) {
  name = target + ".writing-XXXXXX";
  return ::mkstemp(name.data());
}

// Gives a nameless file a name beside `target`.
std::string named(int file, const std::string& target) {
  std::string name;
  const int taken = named_beside(target, name);  // of all names, one that is free
  if (taken < 0) return "";
  ::close(taken);
  ::unlink(name.c_str());
  return exec::give_name(file, name) ? name : "";
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  refuse_folder(path_);
  const bool direct = is_written_directly(path_);
  target_ = direct ? path_ : target_of(path_);
  if (!direct) {
    file_ = exec::nameless_beside(target_);
    if (file_ < 0) file_ = named_beside(target_, temporary_);
    if (file_ < 0) fail(path_, std::strerror(errno), other_file);
  }
  errno = 0;
  if (direct || ::fchmod(file_, rights_of(target_)) == 0)
    stream_.open(direct ? path_ : exec::name_of_open(file_), std::ios::binary | std::ios::trunc);
  if (!stream_.is_open()) {
    const std::string reason = std::strerror(errno);
    remove_temporary();
    fail(path_, reason, other_file);
  }
}

OutputFile::~OutputFile() {
  stream_.close();
  remove_temporary();
}

void OutputFile::remove_temporary() {
  if (file_ < 0) return;
  ::close(file_);
  // An error is already under way; a left-over temporary file needs no second one.
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove(temporary_, ignored);
}

std::uint64_t OutputFile::commit() {
  errno = 0;
  stream_.close();
  if (!stream_) {
    const std::string reason = errno != 0 ? std::strerror(errno) : "not all of it was taken";
    fail(path_, reason, "make room, or name another file");
  }
  if (file_ < 0) return 0;
  if (temporary_.empty()) temporary_ = named(file_, target_);
  if (temporary_.empty()) fail(path_, std::strerror(errno), other_file);
  const std::uint64_t bytes = fs::file_size(temporary_);
  fs::rename(temporary_, target_);
  ::close(std::exchange(file_, -1));
  return bytes;
}

void check_writable(const std::string& path) {
  if (!is_written_directly(path)) {
    OutputFile(std::string(path));
    return;
  }
  refuse_folder(path);
  if (::access(path.c_str(), W_OK) != 0) fail(path, std::strerror(errno), other_file);
}

void check_folder_writable(const std::string& path) {
  constexpr const char* remedy = "name a folder that you may create or write to";
  std::error_code ignored;
  fs::path there = fs::absolute(path).lexically_normal();
  while (!fs::exists(there, ignored) && there.has_relative_path()) there = there.parent_path();
  if (!fs::is_directory(there, ignored)) fail(path, there.string() + " is not a folder", remedy);
  if (::access(there.c_str(), W_OK | X_OK) != 0) fail(path, there.string() + ": " + std::strerror(errno), remedy);
}

}  // namespace slipway::scenarios
