// libnccl.so.2 without a GPU: nothing travels. Each communicator writes its calls, a line each in their order, into
// SLIPWAY_DOUBLE_LAUNCHES/nccl.<communicator>.<rank>. These files show whether members meet NCCL's demand: the same
// operations of the same size in the same order.
//
//   operation, number of elements, their type, peer (-1: all), and which group it is in (ncclGroupStart)
//
// An operation occupies the device until the others of its communicator have started theirs, as the files tell. What is
// loaded at first use waits until there is none, and who waits for a stream waits for those that its own thread started.
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <list>
#include <mutex>
#include <string>
#include <thread>

struct ncclComm {
  int ranks = 0, rank = 0;
  std::string path;  // of the files of all members, without the member
  std::FILE* file = nullptr;
  std::atomic<long> operations{0};
};

namespace {

struct Started {
  std::string path;  // of a member's file
  long number = 0;   // of the operation in its communicator
  std::thread::id by{};
};
std::mutex started_mutex;
std::list<Started> started;  // operations that others had not begun when somebody looked last

bool has_begun(const Started& operation) {
  std::ifstream file(operation.path);
  std::string line;
  for (long i = 0; i < operation.number; ++i)
    if (!std::getline(file, line)) return false;
  return true;
}

// Until no operation that `counts` is left. Ends the process when that never happens.
template <class Counts>
void wait(const char* what, int limit_s, Counts counts) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(limit_s);
  for (;;) {
    {
      const std::lock_guard lock(started_mutex);
      started.remove_if(has_begun);
      const auto left = std::find_if(started.begin(), started.end(), counts);
      if (left == started.end()) return;
      if (std::chrono::steady_clock::now() > until) {
        std::fprintf(stderr, "CUDA double: %s has waited %d s for the device, where %s is awaited\n", what, limit_s,
                     left->path.c_str());
        std::_Exit(70);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::atomic<long> groups{0};  // begun
thread_local int depth = 0;
thread_local long group = 0;

ncclResult_t write(ncclComm* comm, const char* what, size_t count, ncclDataType_t type, int peer) {
  if (depth == 0) group = ++groups;  // of its own
  ++comm->operations;
  if (!comm->file) return ncclSuccess;
  std::fprintf(comm->file, "%s %zu %d %d %ld\n", what, count, static_cast<int>(type), peer, group);
  std::fflush(comm->file);
  const std::lock_guard lock(started_mutex);
  for (int other = 0; other < comm->ranks; ++other)
    if (other != comm->rank && (peer < 0 || peer == other))
      started.push_back({comm->path + std::to_string(other), comm->operations, std::this_thread::get_id()});
  return ncclSuccess;
}

ncclResult_t leave(ncclComm* comm) {
  if (comm->file) std::fclose(comm->file);
  delete comm;
  return ncclSuccess;
}

}  // namespace

extern "C" {

void slipway_double_wait_until_idle(const char* what) {
  wait(what, 10, [](const Started&) { return true; });
}
void slipway_double_wait_for_this_thread() {
  wait("the host", 100, [](const Started& one) { return one.by == std::this_thread::get_id(); });
}

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> made{0};
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "%d-%d", static_cast<int>(getpid()), ++made);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t*) {
  const char *expected = std::getenv("SLIPWAY_DOUBLE_NCCL_INTERFACE"), *given = std::getenv("NCCL_SOCKET_IFNAME");
  if (expected && std::string(expected) != (given ? given : "")) return ncclInvalidUsage;
  auto* made = new ncclComm{ranks, rank, "", nullptr, 0};
  if (const char* folder = std::getenv("SLIPWAY_DOUBLE_LAUNCHES")) {
    made->path = std::string(folder) + "/nccl." + id.internal + ".";
    const std::string path = made->path + std::to_string(rank);
    made->file = std::fopen(path.c_str(), "w");
    if (!made->file) std::perror(path.c_str());
  }
  *comm = made;
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(comm, ranks, id, rank, nullptr);
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  *count = comm->ranks;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  *rank = comm->rank;
  return ncclSuccess;
}
// After this many operations of a communicator, its network is gone.
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const char* limit = std::getenv("SLIPWAY_DOUBLE_NCCL_BREAKS_AFTER");
  *error = limit && comm->operations > std::atol(limit) ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return leave(comm); }
ncclResult_t ncclCommAbort(ncclComm_t comm) { return leave(comm); }
const char* ncclGetErrorString(ncclResult_t) { return "an error of the NCCL double"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclGroupStart() {
  if (depth++ == 0) group = ++groups;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (depth == 0) return ncclInvalidUsage;
  --depth;
  return ncclSuccess;
}
ncclResult_t ncclAllReduce(const void*, void*, size_t count, ncclDataType_t type, ncclRedOp_t, ncclComm_t comm,
                           cudaStream_t) {
  return write(comm, "all-reduce", count, type, -1);
}
ncclResult_t ncclAllGather(const void*, void*, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t) {
  return write(comm, "all-gather", count, type, -1);
}
ncclResult_t ncclReduceScatter(const void*, void*, size_t count, ncclDataType_t type, ncclRedOp_t, ncclComm_t comm,
                               cudaStream_t) {
  return write(comm, "reduce-scatter", count, type, -1);
}
ncclResult_t ncclSend(const void*, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t) {
  return write(comm, "send", count, type, peer);
}
ncclResult_t ncclRecv(void*, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t) {
  return write(comm, "receive", count, type, peer);
}

}  // extern "C"
