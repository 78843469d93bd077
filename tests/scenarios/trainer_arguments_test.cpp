// Dictionaries of trainers' arguments: each effect, versions, recipes and both directions on a small one that is made up,
// errors of a bad one, and the way there and back on the built-in ones.
#include <gmock/gmock.h>

#include "scenarios/predict/load_scenario.h"
#include "scenarios/trainers/launch.h"
#include "scenarios/trainers/reading.h"
#include "tests/support/printed.h"
#include "tests/support/source_tree.h"

namespace slipway::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string made_up = R"(
of: a trainer that is made up
source: its code
versions: ["1", "2", "3"]
program: train
launched: version 3
arguments:
  tp: {key: layout.tensor, default: 1}
  exchange: {key: layout.context_exchange, values: {p2p: ring, gather: all-gather}, default: p2p}
  no-clip: {part: run.clip_norm, launch: {when: {run.clip_norm: 0}, flag: true}}
  clip: {part: run.clip_norm, launch: {when: {run.clip_norm: "> 0"}, value: "{run.clip_norm}"}}
  tokens-in-billions: {key: run.tokens, factor: 1e9}
  unordered: {key: schedule.delay_wgrad, negated: true, launch: never}
  overlap: {key: schedule.overlap_tensor, since: "2"}
  old-overlap: {key: schedule.overlap_tensor, until: "1"}
  speed: {part: schedule.recompute}
  frozen: {key: run.frozen_layers, otherwise: all layers are trained}
  thawed: {key: run.thawed_layers}
  colour: {none: it is for people}
  turbo: {near: priced as without, harmless: ["off"]}
  magic: {not modelled: magic}
  mode: {part: schedule.recompute, launch: [{when: {schedule.recompute: full}, word: "mode:full"}]}
conditions:
  slow: [{--speed: low}, {--speed: absent}]
import:
  - {when: {slow: "true"}, set: {schedule.recompute: full}, by: speed}
  - {when: {slow: "false"}, no effect: speed, words: "{--speed} is what is priced anyway"}
  - {when: {--no-clip: given}, set: {run.clip_norm: 0}, by: no-clip}
  - {set: {run.clip_norm: "{--clip|1}"}, by: clip}
  - {contradiction: [no-clip, clip], remedy: keep one}
launch:
  - {when: {layout.tensor: "> 4"}, refused: "{layout.tensor} tensor ranks"}
  - {missing: "nothing of the weather"}
recipes:
  fast: {source: a talk, arguments: {tp: 8, clip: 0.5}}
)";

const Dictionary& dictionary() {
  static const Dictionary read = [] {
    Defects defects;
    auto read = dictionary_from_yaml(made_up, "made-up.yaml", "made-up", defects);
    EXPECT_TRUE(read.has_value()) << describe(defects);
    return read.value_or(Dictionary{});
  }();
  return read;
}

Arguments given(const std::vector<std::pair<std::string, std::vector<std::string>>>& list) {
  Arguments arguments;
  for (const auto& [name, values] : list) arguments.list.push_back({name, values, {"run.sh", 3}});
  return arguments;
}

Reading read(const std::vector<std::pair<std::string, std::vector<std::string>>>& list, const std::string& version = "",
             const ImportChoices& choices = {}) {
  Reading reading(dictionary(), given(list), choices);
  reading.read(version);
  return reading;
}

std::vector<std::string> notes_of(const Reading& reading) {
  std::vector<std::string> notes;
  for (const ImportNote& note : reading.notes())
    notes.push_back(std::string(name_in(note_kind_names, note.kind)) + ": " + note.argument + ": " + note.words);
  return notes;
}

TEST(TrainerArguments, AKeyHasTheArgumentsValueItsWordsOrItsProduct) {
  const Reading reading =
      read({{"tp", {"4"}}, {"exchange", {"gather"}}, {"tokens-in-billions", {"2.5"}}, {"unordered", {}}});
  EXPECT_EQ(reading.value("layout.tensor"), "4");
  EXPECT_EQ(reading.value("layout.context_exchange"), "all-gather");
  EXPECT_EQ(reading.value("run.tokens"), "2.5e+09");
  EXPECT_EQ(reading.value("schedule.delay_wgrad"), "false");
}

TEST(TrainerArguments, WhatHasNoEffectIsNearOrIsNotModelledIsSaid) {
  Reading reading = read(
      {{"colour", {"red"}}, {"turbo", {"on"}}, {"magic", {}}, {"frozen", {"3"}}, {"thawed", {"2"}}, {"taste", {}}});
  EXPECT_THAT(notes_of(reading), testing::IsSupersetOf({"no effect: --colour red: it is for people",
                                                        "priced as the nearest: --turbo on: priced as without",
                                                        "priced as the nearest: --frozen 3: all layers are trained"}));
  const std::string errors = describe(reading.defects());
  EXPECT_THAT(errors, HasSubstr("run.sh:3: --magic: magic, which is not modelled"));
  EXPECT_THAT(errors, HasSubstr("--thawed: it is not modelled yet (the key would be run.thawed_layers)"));
  EXPECT_THAT(errors, HasSubstr("--taste: it is unknown to import"));
  EXPECT_THAT(notes_of(read({{"turbo", {"off"}}})), Contains(HasSubstr("with this value it changes nothing")));
}

TEST(TrainerArguments, WithoutAnArgumentLeavesItOutAndWithoutAllWhatIsNotModelled) {
  ImportChoices choices;
  choices.without = {"all", "clip"};
  Reading reading = read({{"magic", {}}, {"clip", {"3"}}}, "", choices);
  EXPECT_THAT(reading.defects(), IsEmpty());
  EXPECT_EQ(reading.value("run.clip_norm"), "1");
  EXPECT_THAT(notes_of(reading), Contains("left out: --clip 3: as --without says"));
}

TEST(TrainerArguments, StepsSayWhatSeveralArgumentsSayTogetherAndTheFirstValueHolds) {
  EXPECT_EQ(read({}).value("schedule.recompute"), "full");
  EXPECT_EQ(read({}).value("run.clip_norm"), "1");
  EXPECT_EQ(read({{"no-clip", {}}}).value("run.clip_norm"), "0");
  const Reading fast = read({{"speed", {"high"}}});
  EXPECT_FALSE(fast.has("schedule.recompute"));
  EXPECT_THAT(notes_of(fast), Contains("no effect: --speed high: high is what is priced anyway"));
  Reading both = read({{"no-clip", {}}, {"clip", {"2"}}});
  EXPECT_THAT(describe(both.defects()),
              HasSubstr("--clip: it contradicts --no-clip; allowed: one of the two; keep one"));
  ImportChoices choices;
  choices.keys = {"run.clip_norm=7"};
  EXPECT_EQ(read({{"clip", {"2"}}}, "", choices).value("run.clip_norm"), "7");
}

TEST(TrainerArguments, AVersionHasItsOwnArguments) {
  EXPECT_THAT(read({{"overlap", {}}}, "3").defects(), IsEmpty());
  EXPECT_THAT(read({{"overlap", {}}}).defects(), IsEmpty());
  EXPECT_THAT(describe(read({{"overlap", {}}}, "1").defects()), HasSubstr("it is an argument of 2 and later"));
  EXPECT_THAT(describe(read({{"old-overlap", {}}}, "2").defects()), HasSubstr("it is an argument of 1 and before"));
}

TEST(TrainerArguments, ARecipesArgumentsStandBehindTheUsers) {
  Arguments arguments = given({{"clip", {"2"}}});
  Defects defects;
  add_recipe(dictionary(), "fast", {"--recipe fast", 0}, arguments, defects);
  EXPECT_THAT(defects, IsEmpty());
  Reading reading(dictionary(), arguments, {});
  reading.read();
  EXPECT_EQ(reading.value("layout.tensor"), "8");
  EXPECT_EQ(reading.value("run.clip_norm"), "2");
  add_recipe(dictionary(), "fsat", {"--recipe fsat", 0}, arguments, defects);
  EXPECT_THAT(describe(defects), HasSubstr("there is no recipe 'fsat'; did you mean 'fast'?; allowed: fast"));
}

const std::string examples = SLIPWAY_SOURCE_DIR "/scenarios/examples/";

LaunchArguments launch(std::vector<std::string> overrides, const std::string& version = "") {
  overrides.emplace_back("layout.data=");  // what the other degrees leave
  const LoadResult loaded = load_scenario(examples + "llama-8b-64xh100.yaml", overrides);
  EXPECT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
  return arguments_for(dictionary(), version, loaded.scenario);
}

TEST(TrainerArguments, ALaunchHasWhatIsNotTheTrainersDefaultInTheDictionarysOrder) {
  const std::vector<std::string> keys{"layout.tensor=4", "run.tokens=2e9", "run.clip_norm=0.5",
                                      "schedule.overlap_tensor=true", "schedule.recompute=full"};
  const LaunchArguments found = launch(keys);
  EXPECT_THAT(found.arguments, ElementsAre("--tp 4", "--clip 0.5", "--tokens-in-billions 2", "--overlap", "mode:full"));
  EXPECT_THAT(found.refused, IsEmpty());
  EXPECT_THAT(found.missing, ElementsAre("nothing of the weather"));
  EXPECT_THAT(launch(keys, "1").arguments, testing::AllOf(Contains("--old-overlap"), Not(Contains("--overlap"))));
  EXPECT_THAT(launch({"run.clip_norm=0"}).arguments, Contains("--no-clip"));
  EXPECT_THAT(launch({"layout.tensor=8"}).refused, ElementsAre("8 tensor ranks"));
}

Defects defects_of(const std::string& text) {
  Defects defects;
  dictionary_from_yaml(text, "bad.yaml", "bad", defects);
  return defects;
}

TEST(TrainerArguments, ABadDictionaryIsRefusedWithLineKeyAndRemedy) {
  const std::string errors =
      describe(defects_of("versions: [\"1\"]\n"
                          "arguments:\n"
                          "  a: {none: x, near: y}\n"
                          "  b: {key: layout.tensor, since: \"2\", launhc: never}\n"
                          "  c: {part: x, launch: {when: {layout.tensro: 1}, flag: true}}\n"
                          "  d: {part: x, launch: {compose: nothing}}\n"
                          "import:\n"
                          "  - {set: {layout.tensro: 1}, by: a}\n"
                          "  - {set: {layout.tensor: \"{--z}\"}, by: a, compose: no-such}\n"
                          "recipes:\n"
                          "  r: {arguments: {z: 1}}\n"
                          "colours: red\n"));
  for (const char* part :
       {"bad.yaml:3: arguments.a: it has 2 effects; allowed: one of key, part, none, near, not modelled; say what it "
        "does",
        "bad.yaml:4: arguments.b.since: there is no version '2'; allowed: 1; name one of `versions`",
        "bad.yaml:4: arguments.b.launhc: unknown field", "bad.yaml:5: arguments.c.launch.when: 'layout.tensro' is no",
        "did you mean 'layout.tensor'?", "bad.yaml:6: arguments.d.launch.compose: there is no function 'nothing'",
        "bad.yaml:8: import.set: 'layout.tensro' is no scenario key", "a step does 2 things; allowed: one; split it",
        "there is no function 'no-such'", "'--z' is no argument", "recipes.r: has no source",
        "bad.yaml:12: colours: unknown section"})
    EXPECT_THAT(errors, HasSubstr(part));
  EXPECT_THAT(describe(defects_of("[]\n")), HasSubstr("the file is no map"));
  EXPECT_THAT(describe(defects_of("of: nothing\n")), HasSubstr("there is no argument"));
  EXPECT_THAT(describe(defects_of("extends: nobody\narguments: {a: {none: x}}\n")),
              HasSubstr("there is no dictionary"));
}

TEST(TrainerArguments, ADictionaryThatExtendsAnotherHasItsArgumentsAndItsOwn) {
  Defects defects;
  const auto own = dictionary_from_yaml(
      "extends: made-up\nof: its child\narguments:\n  colour: {not modelled: colours}\n  zero: {key: layout.zero}\n",
      "child.yaml", "child", defects, [](std::string_view) { return &dictionary(); });
  ASSERT_TRUE(own.has_value()) << describe(defects);
  EXPECT_EQ(own->find("colour")->effect, Effect::not_modelled);
  EXPECT_EQ(own->find("tp")->key, "layout.tensor");
  EXPECT_EQ(own->find("zero")->key, "layout.zero");
  EXPECT_EQ(own->versions, dictionary().versions);
}

TEST(TrainerArguments, EveryBuiltInDictionaryLoadsAndEveryTrainersIsThere) {
  for (const std::string& name : dictionary_names()) ASSERT_NE(built_in_dictionary(name), nullptr) << name;
  EXPECT_EQ(built_in_dictionary("nobody's"), nullptr);
  EXPECT_THAT(launched_names(), ElementsAre("megatron", "torchtitan"));
}

TEST(TrainerArguments, ReadingALaunchGivesTheKeysThatItWasMadeFrom) {
  const std::vector<std::vector<std::string>> cases{
      {"layout.tensor=4", "run.clip_norm=0.5", "run.tokens=2e9", "schedule.recompute=full"},
      {"layout.tensor=2", "run.clip_norm=0", "schedule.overlap_tensor=true", "schedule.recompute=full"}};
  for (const std::vector<std::string>& keys : cases) {
    std::vector<std::pair<std::string, std::vector<std::string>>> again;
    for (const std::string& argument : launch(keys).arguments) {
      if (!argument.starts_with("--")) continue;
      const std::size_t space = std::min(argument.find(' '), argument.size());
      again.push_back({argument.substr(2, space - 2), {}});
      if (space < argument.size()) again.back().second.push_back(argument.substr(space + 1));
    }
    const Reading reading = read(again);
    for (const std::string& key : keys) {
      const std::size_t equals = key.find('=');
      const std::string value = reading.value(key.substr(0, equals)), wanted = key.substr(equals + 1);
      EXPECT_EQ(value, wanted == "2e9" ? "2e+09" : wanted) << key;
    }
  }
}

}  // namespace
}  // namespace slipway::test
