#include "exec/rank/gradient_dump.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <stdexcept>

namespace slipway::exec {
namespace {

struct Header {
  std::string name, dtype;
  std::int64_t rows = 0, columns = 0, from = 0, to = 0;
  int dim = -1;
  std::vector<Piece> pieces;
  Piece across;
};

Header header_from(const std::string& line) {
  std::istringstream in(line);
  Header header;
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

std::vector<std::int64_t> global_indices(const Header& header, int dim) {
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

void read_values(std::istream& in, const Header& header, WholeGradient& whole) {
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

}  // namespace

void write_gradients(std::ostream& out, const BlockParameters& block, const at::Tensor& gradient, std::int64_t begin,
                     std::int64_t end) {
  out << std::setprecision(17);
  for (const ShardedParameter& parameter : block.parameters) {
    const auto [from, to] = range_within(parameter, begin, end);
    if (from >= to || parameter.meta.balances) continue;  // a load is no gradient
    out << "parameter " << parameter.meta.name << ' ' << parameter.meta.shape[0] << ' ' << parameter.meta.shape[1]
        << ' ' << c10::toString(gradient.scalar_type()) << " shard " << parameter.meta.shard_dim << ' '
        << parameter.pieces.size();
    for (const Piece& piece : parameter.pieces) out << ' ' << piece.begin << ' ' << piece.end;
    out << " across " << parameter.across.begin << ' ' << parameter.across.end << " slice " << from - parameter.offset
        << ' ' << to - parameter.offset << '\n';
    const at::Tensor values = gradient.narrow(0, from - begin, to - from).to(at::kCPU, at::kDouble).contiguous();
    const double* value = values.const_data_ptr<double>();
    for (std::int64_t i = 0; i < to - from; ++i) out << value[i] << (i + 1 < to - from ? ' ' : '\n');
  }
}

std::map<std::string, WholeGradient> read_gradients(const std::string& directory, int ranks) {
  std::map<std::string, WholeGradient> gradients;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string path = directory + "/gradients." + std::to_string(rank);
    std::ifstream in(path);
    if (!in) throw std::runtime_error("cannot read " + path);
    try {
      for (std::string line; std::getline(in >> std::ws, line);) {
        const Header header = header_from(line);
        read_values(in, header, gradients[header.name]);
      }
    } catch (const std::exception& error) {
      throw std::runtime_error(path + ": " + error.what());
    }
  }
  return gradients;
}

}  // namespace slipway::exec
