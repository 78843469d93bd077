// How libslipway says no. Nothing was written, started or printed when one of these is thrown.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace slipway {

// One mistake of a scenario.
struct Defect {
  std::string file;     // or "--set KEY=VALUE" for a value that was set; empty: the request as a whole
  int line = 0;         // from 1; 0: has no line
  std::string key;      // "layout.tensor"; may be empty
  std::string message;  // what is wrong and what is allowed
  std::string remedy;   // what to do; may be empty where the message says it
};

// The caller's input cannot be used: a scenario, an option or a schedule. what() has all defects in words.
class Refusal : public std::runtime_error {
 public:
  Refusal(const std::string& words, std::vector<Defect> defects);
  ~Refusal() override;
  const std::vector<Defect>& defects() const;

 private:
  std::vector<Defect> defects_;
};

// The input was right and the work failed: memory ran out, a simulation found a deadlock.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& words);
  ~Failure() override;
};

// The caller's `interrupted` returned true.
class Interrupted : public Failure {
 public:
  using Failure::Failure;
  ~Interrupted() override;
};

}  // namespace slipway
