#!/usr/bin/env bash
# Has C programs use the library: compiled with every warning, run under the sanitizers of the compiler and under valgrind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

cc=${CC:-cc}
command -v "$cc" >/dev/null || {
  echo "c: skipped: no C compiler (cc, or what CC names)"
  exit 0
}
# With the whole workspace, so that no crate is built once more with other features.
cargo build --quiet --workspace --lib
library=${CARGO_TARGET_DIR:-../../target}/debug
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
request='{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"One"},{"role":"assistant","content":"1"},
{"role":"user","content":"Two"},{"role":"assistant","content":"2"},{"role":"user","content":"Three"}]}'

# compile PROGRAM SOURCE FLAG..: linked with the static library
compile() {
  local program=$1 source=$2
  shift 2
  "$cc" -std=c11 -Wall -Wextra -Wpedantic -Werror -g -Iinclude "$@" "$source" -o "$program" \
    "$library/libepitome_c.a" -lpthread -ldl -lm
}

# compacts WHAT COMMAND..: the program keeps the newest request, and says what it did
compacts() {
  local what=$1 out
  shift
  out=$("$@" 50% <<<"$request" 2>"$work/told") || { cat "$work/told" >&2; return 1; }
  [[ $out == *Three* && $out != *'"1"'* ]] || { echo "c: $what: a wrong result: $out" >&2; return 1; }
  ! "$@" 50% <<<"no JSON" >"$work/out" 2>"$work/told"
  grep -q "not JSON" "$work/told" && [[ ! -s $work/out ]]
  echo "c: $what: ok"
}

compile "$work/plain" example/compact.c
compacts "static library" "$work/plain"
"$cc" -std=c11 -Wall -Wextra -Werror -Iinclude example/compact.c -o "$work/shared" -L"$library" -lepitome_c -Wl,-rpath,"$(cd "$library" && pwd)"
compacts "shared library" "$work/shared"
if compile "$work/sanitized" example/compact.c -fsanitize=address,undefined -fno-sanitize-recover=all 2>/dev/null; then
  compacts "address and undefined sanitizers" "$work/sanitized"
else
  echo "c: skipped sanitizers: the compiler has none"
fi
if command -v valgrind >/dev/null; then
  compacts "valgrind" valgrind --quiet --leak-check=full --show-leak-kinds=definite --error-exitcode=99 "$work/plain"
else
  echo "c: skipped valgrind: it is not installed"
fi
if command -v "${CXX:-c++}" >/dev/null; then
  echo '#include <epitome.h>' >"$work/header.cc"
  "${CXX:-c++}" -Wall -Wextra -Werror -Iinclude -fsyntax-only "$work/header.cc"
  echo "c: the header in C++: ok"
fi
