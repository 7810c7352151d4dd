#!/usr/bin/env bash
# Epitome beside everybody who keeps a conversation within a limit, in one run: four crates and three packages of Python.
#
#   benches/compare/run.sh            everything: some five minutes on two cores, and twice that for the first build
#   benches/compare/run.sh --quick    up to 10,000 messages and 1,000 turns
#   benches/compare/run.sh --smoke    small, and without the crates, whose build takes too long for a check
#
# Writes docs/benchmarks/comparison.md and the plots beside it; --quick and --smoke only print. A rival that cannot be built
# or installed is left out, and a line says why. It fails if the validity sweep finds a fault in a strategy of Epitome.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

mode=${1:-}
case $mode in
  "" | --quick) ;;
  --smoke)
    echo "run.sh: skipped the crates: their build takes too long for a check"
    exec ./python.sh --smoke
    ;;
  *) sed -n '/^#   benches/s/^# *//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac

arguments=()
if python=$(./python.sh --prepare); then
  arguments+=(--python "$python" "$PWD/compare.py")
else
  arguments+=(--not-run "the packages of Python" "$python")
fi

cd rust
compare=(cargo run --quiet --release --locked)
if ! cargo build --release --locked; then
  # One after another: who does not build is left out, with the first thing that the compiler says.
  built=()
  for rival in agent-framework langchain machi rig; do
    if said=$(cargo build --release --locked --no-default-features --features "$rival" 2>&1); then
      built+=("$rival")
    else
      arguments+=(--not-run "$rival" "$(grep -m 1 '^error' <<<"$said" || echo "it does not build")")
    fi
  done
  compare+=(--no-default-features --features "$(IFS=,; echo "${built[*]}")")
fi
compare+=(--)

if [[ $mode == --quick ]]; then
  exec "${compare[@]}" --quick "${arguments[@]}"
fi
docs=$PWD/../../../docs/benchmarks
mkdir -p "$docs"
table=$(mktemp)
trap 'rm -f "$table"' EXIT
# What is known of the machine where there is no /proc, is how many processors it has.
load=$(cut -d ' ' -f 1-3 /proc/loadavg 2>/dev/null || echo unknown)
memory=$(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo 2>/dev/null || echo unknown)
status=0
"${compare[@]}" --plots "$docs" "${arguments[@]}" >"$table" || status=$?
[[ -s $table ]] || exit "$status"
{
  echo "# The comparison"
  echo
  echo "Written by \`benches/compare/run.sh\`; [README.md](README.md) says how it is made. Processors:"
  echo "$(getconf _NPROCESSORS_ONLN); memory: $memory; $(rustc --version | cut -d ' ' -f 1,2); load when it began (1, 5, 15 minutes): $load."
  echo
  for plot in as-called without-cloning loop; do echo "![]($plot.svg)"; done
  echo
  cat "$table"
} >"$docs/comparison.md"
echo "run.sh: wrote docs/benchmarks/comparison.md and its plots"
exit "$status"
