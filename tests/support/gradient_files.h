// Reads the gradients that ranks wrote, as exec/rank/gradient_dump.h describes, and puts the whole tensors together.
#pragma once

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "exec/operators/parameters.h"

namespace slipway::test {

struct GradientHeader {
  std::string name, dtype;
  std::int64_t rows = 0, columns = 0, from = 0, to = 0;
  int dim = -1;
  std::vector<Piece> pieces;
  Piece across;
};

inline GradientHeader header_from(const std::string& line) {
  std::istringstream in(line);
  GradientHeader header;
  std::string word, shard, across, slice;
  std::size_t pieces = 0;
  in >> word >> header.name >> header.rows >> header.columns >> header.dtype >> shard >> header.dim >> pieces;
  for (std::size_t i = 0; in && i < pieces; ++i) {
    Piece piece;
    in >> piece.begin >> piece.end;
    header.pieces.push_back(piece);
  }
  in >> across >> header.across.begin >> header.across.end >> slice >> header.from >> header.to;
  if (!in || word != "parameter" || shard != "shard" || across != "across" || slice != "slice")
    throw std::runtime_error("expected a parameter header, found: " + line);
  return header;
}

inline std::vector<std::int64_t> global_indices(const GradientHeader& header, int dim) {
  std::vector<std::int64_t> indices;
  const auto add = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) indices.push_back(i);
  };
  if (std::max(header.dim, 0) == dim)
    for (const Piece& piece : header.pieces) add(piece.begin, piece.end);
  else
    add(header.across.begin, header.across.end);
  return indices;
}

struct WholeGradient {
  std::vector<double> values;  // the whole tensor, row by row
  std::vector<bool> known;     // elements that some rank has written
  double disagreement = 0;     // largest difference between ranks that hold the same element
};

inline void read_values(std::istream& in, const GradientHeader& header, WholeGradient& whole) {
  const auto size = static_cast<std::size_t>(header.rows * header.columns);
  whole.values.resize(size), whole.known.resize(size);
  const std::vector<std::int64_t> rows = global_indices(header, 0), columns = global_indices(header, 1);
  const auto width = static_cast<std::int64_t>(columns.size());
  for (std::int64_t i = header.from; i < header.to; ++i) {
    double value = 0;
    if (!(in >> value)) throw std::runtime_error("values of " + header.name + " end early");
    const auto at = static_cast<std::size_t>(rows.at(i / width) * header.columns + columns[i % width]);
    if (whole.known.at(at)) whole.disagreement = std::max(whole.disagreement, std::abs(whole.values[at] - value));
    whole.values[at] = value;
    whole.known[at] = true;
  }
}

// Combines the files of ranks 0..ranks−1. Throws std::runtime_error with file and parameter.
inline std::map<std::string, WholeGradient> read_gradients(const std::string& directory, int ranks) {
  std::map<std::string, WholeGradient> gradients;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string path = directory + "/gradients." + std::to_string(rank);
    std::ifstream in(path);
    if (!in) throw std::runtime_error("cannot read " + path);
    try {
      for (std::string line; std::getline(in >> std::ws, line);) {
        const GradientHeader header = header_from(line);
        read_values(in, header, gradients[header.name]);
      }
    } catch (const std::exception& error) {
      throw std::runtime_error(path + ": " + error.what());
    }
  }
  return gradients;
}

}  // namespace slipway::test
