#!/bin/sh
# One training on different networks, and with different collective algorithms: two tables (text and CSV). Writes to
# topologies-study/ of the build folder (BUILD, build/ if it is not set).
set -eu
cd "$(dirname "$0")/../../.."
build=${BUILD:-build}
out=$build/topologies-study
mkdir -p "$out"
study() {
  name=$1
  shift
  "$build/slipway" study scenarios/studies/topologies/llama-8b-64xh100.yaml "$@" \
    --columns step_time_s,mfu,exposed_comm_share --csv "$out/$name.csv"
  echo
}
study networks --vary "cluster.fabrics.1.topology=star,rail-optimised,{kind: fat-tree, shape: [16]},\
{kind: fat-tree, shape: [16], oversubscription: 4},{kind: fat-tree, shape: [16], oversubscription: 16},\
{kind: torus, shape: [8, 8]},{kind: dragonfly, shape: [2, 8]}"
study algorithms --vary cluster.collectives=ring,multi-ring,tree,hierarchical,nccl
# A second training of the same kind in the same cluster, in nodes of its own, where leaves are oversubscribed.
for place in packed alternate-nodes; do
  echo "placed $place:"
  "$build/slipway" simulate scenarios/studies/topologies/llama-8b-64xh100.yaml --beside scenarios/studies/topologies/llama-8b-64xh100.yaml \
    --place $place --set "cluster.fabrics.1.topology={kind: fat-tree, shape: [16], oversubscription: 16}"
done
