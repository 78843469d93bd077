// `make package`: the tarball's program runs from any folder, without the build's libraries, on a given PyTorch or one
// that it finds. It prints what is missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "exec/run/run_files.h"
#include "tests/support/rank_processes.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

// SLIPWAY_RANK_PROGRAM is packed from the build folder; the tarball is left there.
std::string unpacked() {
  static const std::string program = [] {
    const std::string folder = temporary_folder().path("package");
    std::filesystem::create_directories(folder);
    const std::string build = std::filesystem::path(SLIPWAY_RANK_PROGRAM).parent_path().string();
    const std::string command = "BUILD='" + build + "' '" SLIPWAY_SOURCE_DIR "/setup/package.sh' rank > '" + folder +
                                "/said' && tar xzf '" + build + "'/slipway-rank-*-x86_64.tar.gz -C '" + folder + "'";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return folder + "/slipway-rank/slipway-rank";
  }();
  return program;
}

std::string said_by(const std::string& words, int status) {
  const std::string file = temporary_folder().path("said");
  const int ended = std::system(("env -i PATH=/usr/bin:/bin " + words + " > '" + file + "' 2>&1").c_str());
  EXPECT_EQ(WEXITSTATUS(ended), status);
  return text_of_file(file);
}

// With the node's C library, and with the packed one, as on a node whose own is too old.
class PackageWith : public testing::TestWithParam<std::string> {};

TEST_P(PackageWith, RunsABundleOnTwoRanksWithNothingButPyTorch) {
  const std::string folder = temporary_folder().path("packed-run-" + GetParam());
  Step input = tiny_input(tiny_llama(2, false));
  input.layout.pipeline = 2;
  Bundle bundle = tiny_bundle(input);
  bundle.run.steps = 2;
  std::filesystem::create_directories(folder);
  write_bundle_file(folder + "/run.slip", bundle);
  RankProcesses ranks(
      unpacked(), {folder + "/run.slip", "--out", folder, "--connect-timeout", "120"}, 2, folder,
      {{"SLIPWAY_TORCH", SLIPWAY_TORCH_DIR}, {"SLIPWAY_DEVICE", "cpu"}, {"SLIPWAY_LIBRARIES", GetParam()}});
  for (const Ended& ended : ranks.wait(60)) EXPECT_EQ(ended.status, 0) << ended.errors;
  EXPECT_TRUE(std::filesystem::exists(losses_path(folder)));
}

INSTANTIATE_TEST_SUITE_P(Libraries, PackageWith, testing::Values("newest", "packed"));

// The loader's documented search (ld.so(8)).
TEST(Package, TakesTheNodesLibrariesUnlessTheyAreTooOldOrItIsTold) {
  const std::string package = std::filesystem::path(unpacked()).parent_path().string();
  const auto loads = [&](const std::string& libraries) {
    return said_by("SLIPWAY_LIBRARIES=" + libraries +
                       " SLIPWAY_TORCH='" SLIPWAY_TORCH_DIR "' SLIPWAY_DEVICE=cpu LD_DEBUG=libs '" + unpacked() +
                       "' --version 2>&1 | grep 'calling init.*libstdc'",
                   0);
  };
  EXPECT_THAT(loads("newest"), Not(HasSubstr(package)));
  EXPECT_THAT(loads("packed"), HasSubstr(package + "/lib/libstdc++.so.6"));
  const std::string needs = text_of_file(package + "/lib/needs");
  std::ofstream(package + "/lib/needs") << "GLIBC 9.99\nGLIBCXX 3.4.30\n";
  EXPECT_THAT(loads("newest"), HasSubstr(package + "/lib/libstdc++.so.6")) << "the node's is too old";
  std::ofstream(package + "/lib/needs") << needs;
}

TEST(Package, RunsThroughALinkThatIsElsewhere) {
  const std::string link = temporary_folder().path("linked-slipway-rank");
  std::filesystem::remove(link);
  std::filesystem::create_symlink(unpacked(), link);
  EXPECT_THAT(said_by("SLIPWAY_TORCH='" SLIPWAY_TORCH_DIR "' SLIPWAY_DEVICE=cpu '" + link + "' --version", 0),
              testing::StartsWith("slipway-rank "));
}

TEST(Package, CarriesTheLibrariesOfItsSystemAndNoneOfPyTorch) {
  std::set<std::string> libraries;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(unpacked()).parent_path() / "lib"))
    libraries.insert(entry.path().filename().string());
  for (const char* needed : {"ld-linux-x86-64.so.2", "libc.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libm.so.6"})
    EXPECT_TRUE(libraries.contains(needed)) << needed;
  for (const std::string& each : libraries)
    EXPECT_FALSE(each.starts_with("libtorch") || each.starts_with("libcu")) << each;
}

TEST(Package, SaysWhenPyTorchIsMissingOrAnother) {
  EXPECT_THAT(said_by("SLIPWAY_TORCH=/nowhere '" + unpacked() + "' --version", 2),
              AllOf(HasSubstr("no PyTorch 2.11 here"), HasSubstr("/nowhere"), HasSubstr("pip install torch==2.11.0")));
  const std::string other = temporary_folder().path("other-torch");
  std::filesystem::create_directories(other + "/lib");
  std::ofstream(other + "/lib/libtorch_cpu.so") << "";
  std::ofstream(other + "/version.py") << "__version__ = '2.4.1'\n";
  EXPECT_THAT(said_by("SLIPWAY_TORCH='" + other + "' '" + unpacked() + "' --version", 2),
              AllOf(HasSubstr("PyTorch 2.4.1"), HasSubstr("linked with 2.11")));
  EXPECT_THAT(said_by("SLIPWAY_TORCH='" SLIPWAY_TORCH_DIR "' '" + unpacked() + "' --version", 0),
              HasSubstr("slipway-rank "));
}

}  // namespace
}  // namespace slipway::test
