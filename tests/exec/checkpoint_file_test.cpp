// The files of a checkpoint: complete or absent, and every damage is found.
#include "exec/run/checkpoint_file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "exec/run/checksum.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

CheckpointEntry entry_of(const std::string& parameter, std::int64_t elements) {
  CheckpointEntry entry;
  entry.parameter = parameter;
  entry.dtype = Dtype::float64;
  entry.rows = elements;
  entry.columns = 1;
  entry.pieces = {{0, elements}};
  entry.to = elements;
  entry.updates = 4;
  return entry;
}

// Two entries of two and three numbers, by rank 3.
std::string written(const std::string& name) {
  const std::string folder = temporary_folder().path(name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  ShardWriter writer(folder, 3);
  writer.add(entry_of("a", 2), std::string(16, 'm'), std::string(16, 'f'), std::string(16, 's'));
  writer.add(entry_of("b", 3), std::string(24, 'M'), std::string(24, 'F'), std::string(24, 'S'));
  writer.add({"a.inverse_A", Dtype::float64, 2, 2}, std::string(32, 'i'));
  Manifest manifest;
  manifest.step = 4;
  manifest.samples = 32;
  manifest.batch = 12;
  manifest.seed = 18446744073709551615ULL;
  manifest.sequence = 16;
  manifest.data = {1000, 77, "/data/my text"};
  manifest.settings = {{"heads", "4"}, {"heads from layer 4", "8"}};
  manifest.shards[3] = writer.finish().value();
  write_durably(manifest_path(folder), to_text(manifest));
  return folder;
}

void flip(const std::string& path, std::streamoff at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(at).put(byte);
}

TEST(CheckpointFile, GivesBackWhatWasWritten) {
  const CheckpointReader reader(written("whole"));
  EXPECT_EQ(reader.manifest().step, 4);
  EXPECT_EQ(reader.manifest().samples, 32);
  EXPECT_EQ(reader.manifest().batch, 12);
  EXPECT_EQ(reader.manifest().seed, 18446744073709551615ULL);
  EXPECT_EQ(reader.manifest().sequence, 16);
  EXPECT_TRUE(reader.manifest().data.is_same({1000, 77, ""}));
  EXPECT_EQ(reader.manifest().data.path, "/data/my text");
  EXPECT_EQ(other_settings(reader.manifest(), {{"heads", "4"}, {"theta", "9"}}), "");
  EXPECT_EQ(other_settings(reader.manifest(), {{"heads", "4"}, {"heads from layer 4", "2"}}),
            "heads from layer 4: 8 there, 2 here");
  EXPECT_EQ(reader.parameters(), (std::vector<std::string>{"a", "b"}));
  const std::vector<StoredEntry> entries = reader.entries_of("b");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].shard, 3);
  EXPECT_EQ(entries[0].updates, 4);
  EXPECT_EQ(entries[0].pieces.front().end, 3);
  EXPECT_EQ(reader.read(entries[0]), std::string(24, 'M') + std::string(24, 'F') + std::string(24, 'S'));
  EXPECT_TRUE(reader.entries_of("c").empty());
  const StoredMatrix* const matrix = reader.matrix("a.inverse_A");
  ASSERT_NE(matrix, nullptr);
  EXPECT_EQ(matrix->rows, 2);
  EXPECT_EQ(reader.read(*matrix), std::string(32, 'i'));
  EXPECT_EQ(reader.matrix("a.inverse_B"), nullptr);
}

// A manifest of version 1, without the batch.
TEST(CheckpointFile, AManifestOfVersion1IsReadAndDoesNotSayItsBatch) {
  const std::string folder = written("version1");
  const std::string text = "slipway-checkpoint 1\nstep 4\nsamples 32\nseed 7\nshard 3 5\n";
  write_durably(manifest_path(folder), text + "checksum " + std::to_string(checksum_of(text)) + '\n');
  const Manifest manifest = read_manifest(folder);
  EXPECT_EQ(manifest.samples, 32);
  EXPECT_EQ(manifest.seed, 7u);
  EXPECT_EQ(manifest.batch, 0);
  EXPECT_EQ(manifest.sequence, 0);
  EXPECT_EQ(manifest.data.bytes, 0u);
  EXPECT_EQ(manifest.shards, (std::map<int, std::uint64_t>{{3, 5}}));
}

TEST(CheckpointFile, ARankWithNothingToSayWritesNothing) {
  const std::string folder = temporary_folder().path("nothing");
  std::filesystem::create_directories(folder);
  EXPECT_EQ(ShardWriter(folder, 0).finish(), std::nullopt);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(CheckpointFile, ALinkThatSomebodyPutInItsPlaceIsNotFollowed) {
  const std::string folder = temporary_folder().path("planted"), victim = temporary_folder().path("victim");
  std::filesystem::create_directories(folder);
  std::ofstream(victim) << "untouched";
  for (const std::string name : {"shard-3.data", "shard-3.index", "manifest"})
    std::filesystem::create_symlink(victim, folder + "/" + name);
  ShardWriter writer(folder, 3);
  writer.add(entry_of("a", 2), std::string(16, 'm'), std::string(16, 'f'), std::string(16, 's'));
  ASSERT_TRUE(writer.finish().has_value());
  write_durably(manifest_path(folder), "a manifest\n");
  std::string text;
  std::getline(std::ifstream(victim), text);
  EXPECT_EQ(text, "untouched");
  for (const auto& file : std::filesystem::directory_iterator(folder)) EXPECT_FALSE(file.is_symlink()) << file.path();
}

TEST(CheckpointFile, OneFlippedBitAnywhereIsNoticedWithTheFile) {
  const auto reads_all = [](const std::string& folder) {
    const CheckpointReader reader(folder);
    for (const char* name : {"a", "b"})
      for (const StoredEntry& entry : reader.entries_of(name)) reader.read(entry);
    if (const StoredMatrix* matrix = reader.matrix("a.inverse_A")) reader.read(*matrix);
  };
  for (const char* file : {"manifest", "shard-3.index", "shard-3.data"}) {
    const auto size = static_cast<std::streamoff>(std::filesystem::file_size(written("size") + "/" + file));
    for (std::streamoff at = 0; at < size; at += 7) {
      const std::string folder = written("flipped");
      flip(folder + "/" + file, at);
      EXPECT_THAT([&] { reads_all(folder); },
                  ThrowsMessage<std::runtime_error>(AllOf(HasSubstr(file), HasSubstr("damaged"))))
          << file << " byte " << at;
    }
  }
}

TEST(CheckpointFile, ACutOrMissingFileIsNamed) {
  const std::string cut = written("cut");
  std::filesystem::resize_file(cut + "/shard-3.data", 100);
  const CheckpointReader reader(cut);
  EXPECT_THAT([&] { reader.read(reader.entries_of("b").front()); },
              ThrowsMessage<std::runtime_error>(HasSubstr("shard-3.data ends before its last entry (b)")));
  const std::string missing = written("missing");
  const CheckpointReader without(missing);
  std::filesystem::remove(missing + "/shard-3.data");
  EXPECT_THAT([&] { without.read(without.entries_of("b").front()); },
              ThrowsMessage<std::runtime_error>(HasSubstr("shard-3.data cannot be read: No such file")));
  std::filesystem::remove(missing + "/shard-3.index");
  EXPECT_THAT([&] { CheckpointReader{missing}; },
              ThrowsMessage<std::runtime_error>(HasSubstr("shard-3.index cannot be read")));
  std::filesystem::remove(missing + "/manifest");
  EXPECT_THAT([&] { CheckpointReader{missing}; }, ThrowsMessage<std::runtime_error>(HasSubstr("is no checkpoint")));
}

// Sound checksums, and an index that nobody's shard has.
std::string with_index(const std::string& index) {
  const std::string folder = written("forged");
  Manifest manifest = read_manifest(folder);
  manifest.shards[3] = checksum_of(index);
  write_durably(folder + "/shard-3.index", index);
  write_durably(manifest_path(folder), to_text(manifest));
  return folder;
}

TEST(CheckpointFile, AnEntryThatNoParameterHasIsRefusedBeforeItIsFollowed) {
  EXPECT_NO_THROW(CheckpointReader{with_index("entry a float64 4 8 1 0 16 4 0 7 2 0 2 4 6\n")});
  for (const char* numbers :
       {"-4 8 1 0 16 4 0 7 1 0 4", "4 0 1 0 0 4 0 7 1 0 0", "4 8 2 0 16 4 0 7 1 0 4", "4 8 1 -1 16 4 0 7 1 0 4",
        "4 8 1 5 4 4 0 7 1 0 4", "4 8 1 0 17 4 0 7 1 0 4", "4 8 1 0 16 4 0 7 1 0 9", "4 8 1 0 16 4 0 7 1 4 0",
        "4 8 1 0 16 4 0 7 2 4 6 0 2", "4 8 1 0 16 4 0 7 0", "4 8 1 0 8 4 0 7 1 0 4 across 3 1",
        "4 8 1 0 8 4 0 7 1 0 4 across 0 5", "4 8 1 0 8 4 0 7 1 0 4 across -1 1",
        "4294967296 4294967296 -1 0 16 4 0 7 1 0 4"})
    EXPECT_THAT([&] { CheckpointReader{with_index(std::string("entry a float64 ") + numbers + "\n")}; },
                ThrowsMessage<std::runtime_error>(HasSubstr("holds an entry that no parameter has")))
        << numbers;
  for (const char* numbers : {"-2 2 0 7", "4294967296 4294967296 0 7"})
    EXPECT_THAT([&] { CheckpointReader{with_index(std::string("matrix m float64 ") + numbers + "\n")}; },
                ThrowsMessage<std::runtime_error>(HasSubstr("holds a line that is no matrix")));
}

TEST(CheckpointFile, AnEntryOfMoreBytesThanItsFileTakesNoMemory) {
  const CheckpointReader reader(
      with_index("entry a float64 1073741824 1048576 -1 0 1125899906842624 4 0 7 1 0 1073741824\n"
                 "matrix m float64 1073741824 1048576 18446744073709551615 7\n"));
  EXPECT_THAT([&] { reader.read(reader.entries_of("a").front()); },
              ThrowsMessage<std::runtime_error>(HasSubstr("shard-3.data ends before its last entry (a)")));
  EXPECT_THAT([&] { reader.read(*reader.matrix("m")); },
              ThrowsMessage<std::runtime_error>(HasSubstr("shard-3.data ends before its last entry (m)")));
}

TEST(CheckpointFolder, OnlyCompleteOnesCountAndTheLatestIsFound) {
  const std::string run = temporary_folder().path("run");
  EXPECT_THAT([&] { resolve_checkpoint("latest", run); },
              ThrowsMessage<std::runtime_error>(HasSubstr("no complete checkpoint is in " + run + "/checkpoints")));
  for (const std::int64_t step : {20, 100, 3}) std::filesystem::create_directories(checkpoint_path(run, step));
  std::filesystem::create_directories(partial_path(checkpoint_path(run, 200)));
  EXPECT_THAT(complete_checkpoints(run), ElementsAre(3, 20, 100));
  EXPECT_EQ(resolve_checkpoint("latest", run), run + "/checkpoints/step-00000100");
  EXPECT_EQ(resolve_checkpoint(run, "/elsewhere"), run + "/checkpoints/step-00000100");
  write_durably(manifest_path(checkpoint_path(run, 20)), to_text({}));
  EXPECT_EQ(resolve_checkpoint(checkpoint_path(run, 20), "/elsewhere"), checkpoint_path(run, 20));
}

TEST(CheckpointFile, AFullDiskIsAnErrorWithTheSystemsReason) {
  const std::string folder = temporary_folder().path("full");
  std::filesystem::create_directories(folder);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit little{4096, before.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &little);
  ShardWriter writer(folder, 0);
  const std::string third(8000, 'x');
  EXPECT_THAT([&] { writer.add(entry_of("a", 1000), third, third, third); },
              ThrowsMessage<std::runtime_error>(AllOf(HasSubstr("shard-0.data"), HasSubstr("File too large"),
                                                      HasSubstr("earlier ones are untouched"))));
  setrlimit(RLIMIT_FSIZE, &before);
}

}  // namespace
}  // namespace slipway::test
