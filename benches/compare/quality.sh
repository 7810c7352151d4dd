#!/usr/bin/env bash
# What Epitome's strategies keep of what a model needs next, beside the packages of Python: Microsoft Agent Framework, LangChain,
# Pydantic AI, and the score of supercompact.
#
#   benches/compare/quality.sh             measures, and writes docs/benchmarks/quality.md and the plots beside it
#   benches/compare/quality.sh --data DIR  the same with the recorded conversations of this folder, in place of ../shared/data
#   benches/compare/quality.sh FILE...     the same on these conversations; prints
#   benches/compare/quality.sh --smoke     the example of the repository, and the program as it is built for tests
#
# The packages are those of python.sh; without them Epitome is measured alone, and a line says why.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# The measurement is the program's, so that it alone is optimized.
profile=release
[[ ${1:-} != --smoke ]] || profile=debug
programs=${CARGO_TARGET_DIR:-target}
# With the examples their crates have the features that `cargo test --workspace` builds them with: they are not built again.
cargo build --quiet --workspace --bin epitome --bin quality --examples
[[ $profile == debug ]] || cargo build --quiet --release -p epitome-cli
quality=("$programs/debug/quality" --program "$programs/$profile/epitome")
note=
if python=$(benches/compare/python.sh --prepare); then
  quality+=(--rivals "$python" "$PWD/benches/compare/quality.py")
else
  note="The packages of Python are missing: $python."
fi

if [[ $# -eq 2 && $1 == --data ]]; then
  quality+=("$@")
elif [[ $# -gt 0 ]]; then
  [[ -z $note ]] || echo "quality.sh: skipped the rivals: $note"
  exec "${quality[@]}" "$@"
fi
docs=$PWD/docs/benchmarks
table=$(mktemp)
trap 'rm -f "$table"' EXIT
"${quality[@]}" --plots "$docs" >"$table"
{
  echo "# What is still known"
  echo
  echo "Written by \`benches/compare/quality.sh\`; [the columns](../program.md#what-a-compaction-forgets) and"
  echo "[what the strategies keep](../what-is-kept.md) are explained elsewhere.${note:+ $note}"
  echo
  echo "Rows in brackets are floors and ceilings. Rivals: $(sed 's/==/ /' benches/compare/requirements.txt | paste -sd, - | sed 's/,/, /g');"
  echo "the score of supercompact as its source publishes it, on exchanges in place of its turns. Each is told how many tokens every"
  echo "message has and how many may stay, so that all aim at the same number; what counts messages gets the largest number that fits."
  echo
  for plot in identifiers copied-text rounds; do [[ ! -f $docs/quality-$plot.svg ]] || echo "![](quality-$plot.svg)"; done
  echo
  cat "$table"
} | cat -s >"$docs/quality.md"
echo "quality.sh: wrote docs/benchmarks/quality.md and its plots"
