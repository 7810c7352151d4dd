#!/usr/bin/env bash
# Mutants of the kernel: code that is wrong on purpose, which a test has to notice.
#
#   tests/mutants.sh rules [FROM-TO]    each rule of drafts is taken out of the code, one after another (tests/mutants/rules.txt);
#                                       of them only those with these numbers, from 1
#   tests/mutants.sh stores [FROM-TO]   as above, what makes a store's writes last (tests/mutants/stores.txt); needs strace
#   tests/mutants.sh sample [N/M]       cargo-mutants on core and the strategies: every Mth of all mutants, from the Nth (0/40)
#   tests/mutants.sh files GLOB...      cargo-mutants on these files, all mutants
#
# They run in a copy of the workspace that holds core, the strategies and the tests that need nothing else: there a mutant
# takes seconds, because no store is built anew for it. Some 2,600 mutants take about six hours.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Tests that need epitome-std are left out, with the programs of this crate.
tests="bounded clearing corpus found grid invariants large mutants parity validity_sweep words"
# Those that notice nearly every missing rule of drafts, alone in a program that is built in seconds.
of_drafts="parts twin"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/mutants
# Shrinking a failure takes longer than finding it, and nobody reads the case.
export PROPTEST_MAX_SHRINK_ITERS=0

copy() {
  mkdir -p "$1/tests/tests/kernel" "$1/tests/tests/drafts"
  cp -r core compactors README.md Cargo.lock clippy.toml "$1"
  cp -r tests/src tests/corpus tests/snapshots tests/Cargo.toml "$1/tests"
  program "$1/tests/tests/kernel" $tests
  program "$1/tests/tests/drafts" $of_drafts
  sed -e 's/^members = .*/members = ["core", "compactors", "tests"]/' -e '/^exclude = /d' -e '/^\[package\]/,$d' Cargo.toml >"$1/Cargo.toml"
  # Two programs for all tests, with a little optimization: linking and running together take the least time.
  printf '[profile.dev]\ndebug = 0\nopt-level = 1\n[profile.dev.package."*"]\nopt-level = 2\n' >>"$1/Cargo.toml"
  sed -i 's/^default = \[\]/default = ["alloc", "heapless", "serde"]/' "$1/core/Cargo.toml"
  # Without what only features need.
  sed -i -e '/^\[features\]/,/^$/c [features]\nstd = []\n' -e '/optional = true/d' "$1/compactors/Cargo.toml"
  sed -i -e '/^autotests = /d' -e '/^\[features\]/,/^$/d' -e '/^\[\[\(bin\|test\)\]\]/,/^$/d' -e '/^\(async-trait\|axum\|epitome\|epitome-std\|futures\|proptest-state-machine\|reqwest\|serde_json\|tokio\)\b[ .]*[={w]/d' \
    "$1/tests/Cargo.toml"
  # What a store needs.
  rm "$1/tests/src/around.rs"
  sed -i '/^pub mod around;$/d' "$1/tests/src/lib.rs"
  sed -i 's/max_shrink_iters: [0-9_]*/max_shrink_iters: 0/' "$1/tests/src/cases.rs"
}

# program FOLDER TEST...: one program of several files of tests.
program() {
  local name folder=$1
  echo '//! Tests, all in one program.' >"$folder/main.rs"
  for name in "${@:2}"; do
    cp "tests/tests/$name.rs" "$folder/"
    echo "mod $name;" >>"$folder/main.rs"
  done
}

# The workspace that the stores are tested in.
copy_stores() {
  cp -r core std docs README.md Cargo.lock clippy.toml "$1"
  sed -e 's/^members = .*/members = ["core", "std/*"]/' -e '/^exclude = /d' -e '/^\[package\]/,$d' Cargo.toml >"$1/Cargo.toml"
}

# Each line of rules.txt and stores.txt: file, text, what stands there instead, rule; separated by tabs. The text is in the file once.
rules() {
  local file from to rule count caught=0 all=0 number=0 first=${2%%-*} last=${2##*-}
  local few=$3 rest=${4:-} whole=
  # What is built anew for each rule takes longer to optimize than to run.
  export CARGO_PROFILE_DEV_OPT_LEVEL=0
  cd "$1"
  cargo test --quiet --offline $few >/dev/null
  # Not by tabs themselves: the shell takes several for one, and what stands instead may be nothing.
  while IFS=$'\037' read -r file from to rule; do
    [[ -n $file && $file != \#* ]] || continue
    number=$((number + 1))
    ((number >= first && number <= last)) || continue
    all=$((all + 1))
    count=$(grep -cF -- "$from" "$file") || true
    if [[ $count != 1 ]]; then
      echo "mutants: $file has \"$from\" $count times, not once: put $rules_file right" >&2
      return 1
    fi
    cp "$file" "$file.whole"
    FROM=$from TO=$to perl -0pi -e 's/\Q$ENV{FROM}\E/$ENV{TO}/' "$file"
    if ! cargo test --no-run --quiet --offline $few 2>/dev/null; then
      echo "mutants: without \"$rule\" the code is none" >&2
      return 1
    fi
    if fails $few || { [[ -n $rest ]] && unchanged_passes "$file" && fails $rest; }; then
      caught=$((caught + 1))
    else
      echo "mutants: missed: $rule"
    fi
    mv "$file.whole" "$file"
    touch "$file"
  done < <(tr '\t' '\037' <"$rules_file")
  echo "mutants: $caught of $all missing rules were caught"
  [[ $all -gt 0 && $caught == "$all" ]]
}

# fails ARGUMENT...: whether a test does, or finds no end. To build them may take as long as it likes.
fails() {
  cargo test --no-run --quiet --offline "$@" 2>/dev/null || return 0
  ! timeout 600 cargo test --quiet --offline "$@" >/dev/null 2>&1
}

# unchanged_passes FILE: all tests pass while FILE is as it was, or nothing can be said. Asked once.
unchanged_passes() {
  [[ -z $whole ]] || return 0
  cp "$1" "$1.changed"
  cp "$1.whole" "$1"
  cargo test --quiet --offline --workspace >/dev/null || exit 1
  mv "$1.changed" "$1"
  touch "$1"
  whole=passed
}

# What the copy does not compile is left out, and the values of `defmt`, which are for a device's log: nothing on a host could
# read them.
cargo_mutants() {
  cd "$1"
  shift
  cargo mutants --in-place --baseline skip --timeout 120 --build-timeout 240 --test-workspace true \
    -p epitome-core -p epitome-compactors -e 'core/src/defmt{.rs,/**}' \
    -e 'compactors/src/{engine,managed,spec,summary}{.rs,/**}' --no-times "$@"
}

rules_file=$PWD/tests/mutants/rules.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ ${1:-} == stores ]]; then
  rules_file=$PWD/tests/mutants/stores.txt
  export EPITOME_REQUIRE=strace
  copy_stores "$work"
else
  copy "$work"
fi
case ${1:-} in
  rules) (rules "$work" "${2:-1-9999}" "--package epitome-tests --test drafts" --workspace) ;;
  stores) (rules "$work" "${2:-1-9999}" "--package epitome-std --features sqlite --test store_contract power::") ;;
  sample) (cargo_mutants "$work" --sharding round-robin --shard "${2:-0/40}") ;;
  files)
    shift
    globs=()
    for glob in "$@"; do globs+=(-f "$glob"); done
    (cargo_mutants "$work" "${globs[@]}")
    ;;
  *)
    sed -n '2,11 s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
