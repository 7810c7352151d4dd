#!/usr/bin/env bash
# Builds and runs all of the C library: tests, the example on a computer, on a Cortex-M4 and on RISC-V, hostile calls, other targets.
# A part whose tools are missing and cannot be installed prints `kernel: skipped PART: why`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
target_dir=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$target_dir
device=thumbv7em-none-eabi
riscv_device=riscv32imac-unknown-none-elf
warnings=(-std=c11 -Wall -Wextra -Werror -Iinclude)
example=(example/agent.c example/checks.c example/main.c)

skipped() {
  echo "kernel: skipped $1: $2"
}

quiet() {
  "$@" >/dev/null 2>&1
}

has_target() {
  [[ -d $(rustc --print target-libdir --target "$1") ]] || quiet rustup target add "$1"
}

# tool NAME PACKAGE...: whether there is such a program, or Debian's packages could be installed.
tool() {
  quiet command -v "$1" || quiet apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${@:2}"
}

# library TO ARGUMENT...: builds it and copies it.
library() {
  local to=$1 folder=$target_dir
  shift
  cargo build --release --locked --quiet "$@"
  [[ "$*" != *--target* ]] || folder=$target_dir/$(sed 's/.*--target \([^ ]*\).*/\1/' <<<"$*")
  cp "$folder/release/libepitome_kernel.a" "$to"
}

check_code() {
  ! quiet cargo fmt --version || cargo fmt --check
  if quiet cargo clippy --version; then
    cargo clippy --locked --quiet --all-targets -- -D warnings
    cargo clippy --locked --quiet --no-default-features -- -D warnings
  fi
  # One of them compares the header with the code.
  cargo test --locked --quiet
}

check_host() {
  if ! tool "${CC:-cc}" gcc libc6-dev; then
    skipped host "there is no C compiler"
    return
  fi
  local cc=${CC:-cc} sanitize=(-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all)
  library "$work/host.a"
  "$cc" "${warnings[@]}" "${sanitize[@]}" "${example[@]}" example/host.c "$work/host.a" -o "$work/agent"
  "$work/agent"
  "$cc" "${warnings[@]}" "${sanitize[@]}" tests/border.c "$work/host.a" -o "$work/border"
  "$work/border"
  check_readme "$cc" "${sanitize[@]}"
  check_other_sizes "$cc" "${sanitize[@]}"
  check_valgrind "$cc"
  check_cpp
  check_cmake
}

# The program of the README runs.
check_readme() {
  sed -n '/^```c$/,/^```$/p' README.md | grep -v '^```' >"$work/readme.c"
  "$1" "${warnings[@]}" "${@:2}" "$work/readme.c" "$work/host.a" -o "$work/readme"
  "$work/readme" | tee "$work/readme.txt"
  grep -qF '"content":"How warm is it?"' "$work/readme.txt"
}

# Other tables, and without the optional strategies; a header that differs is refused.
check_other_sizes() {
  local sizes=(EPITOME_KERNEL_MESSAGES=64 EPITOME_KERNEL_ARENA_BYTES=6000 EPITOME_KERNEL_RESULTS=24)
  (
    export "${sizes[@]}"
    library "$work/other.a" --no-default-features
  )
  "$1" "${warnings[@]}" "${@:2}" "${sizes[@]/#/-D}" tests/border.c "$work/other.a" -o "$work/border-other"
  "$work/border-other"
  "$1" "${warnings[@]}" "${example[@]}" example/host.c "$work/other.a" -o "$work/agent-other"
  if "$work/agent-other" >"$work/refused.txt"; then
    echo "kernel: a header of other sizes was taken" >&2
    return 1
  fi
  grep -q "header and library differ" "$work/refused.txt"
}

check_valgrind() {
  if ! tool valgrind valgrind; then
    skipped valgrind "valgrind is not installed and could not be"
    return
  fi
  local program pids=() pid
  "$1" "${warnings[@]}" -g -O1 "${example[@]}" example/host.c "$work/host.a" -o "$work/agent-plain"
  "$1" "${warnings[@]}" -g -O1 tests/border.c "$work/host.a" -o "$work/border-plain"
  for program in agent-plain border-plain; do
    valgrind --quiet --error-exitcode=1 --leak-check=full "$work/$program" >"$work/$program.txt" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
  echo "kernel: valgrind finds no error"
}

check_cpp() {
  if quiet command -v "${CXX:-c++}"; then
    echo '#include "epitome_kernel.h"' | "${CXX:-c++}" -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c++ -
  else
    skipped c++ "there is no C++ compiler"
  fi
}

check_cmake() {
  if ! tool cmake cmake make; then
    skipped cmake "cmake is not installed and could not be"
    return
  fi
  cmake -S example -B "$work/cmake" -DEPITOME_KERNEL_LIBRARY="$work/host.a" >/dev/null
  cmake --build "$work/cmake" >/dev/null
  "$work/cmake/agent"
}

check_device() {
  local arm=arm-none-eabi
  if ! has_target "$device"; then
    skipped device "the target $device is not installed and could not be added"
  elif ! tool "$arm-gcc" gcc-arm-none-eabi libnewlib-arm-none-eabi || ! quiet "$arm-gcc" --version; then
    skipped device "$arm-gcc is not installed and could not be"
  else
    library "$work/device.a" --target "$device"
    library "$work/small.a" --target "$device" --no-default-features
    device_program all "$work/device.a"
    device_program small "$work/small.a"
    compare
  fi
}

# The same agent on a 32-bit RISC-V.
check_riscv() {
  local riscv=riscv64-unknown-elf headers=/usr/lib/picolibc/riscv64-unknown-elf/include
  if ! has_target "$riscv_device"; then
    skipped RISC-V "the target $riscv_device is not installed and could not be added"
  elif ! tool "$riscv-gcc" gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf || [[ ! -f $headers/string.h ]]; then
    skipped RISC-V "$riscv-gcc with the headers of picolibc is not installed and could not be"
  else
    library "$work/riscv.a" --target "$riscv_device"
    library "$work/riscv-small.a" --target "$riscv_device" --no-default-features
    riscv_program riscv "$work/riscv.a"
    riscv_program riscv-small "$work/riscv-small.a"
    measure_riscv
  fi
}

# device_program NAME LIBRARY: links the example for the Cortex-M4.
device_program() {
  link_agent arm-none-eabi "$1" "$2" -mcpu=cortex-m4 -mthumb example/cortex_m4.c -T example/cortex_m4.ld
}

# riscv_program NAME LIBRARY: the same for RISC-V.
riscv_program() {
  link_agent riscv64-unknown-elf "$1" "$2" -march=rv32imac_zicsr -mabi=ilp32 \
    -isystem /usr/lib/picolibc/riscv64-unknown-elf/include example/riscv32.c -T example/riscv32.ld
}

# link_agent PREFIX NAME LIBRARY ARGUMENT...: nothing in the program can panic.
link_agent() {
  local prefix=$1 elf=$work/$2.elf library=$3
  shift 3
  "$prefix-gcc" "${warnings[@]}" -Os -g -ffunction-sections -fdata-sections -fno-inline-functions-called-once \
    "${example[@]}" "$@" "$library" -nostdlib -Wl,--gc-sections,-n,-z,noexecstack -o "$elf"
  if "$prefix-nm" "$elf" | grep -E 'panicking|_fail|unwind'; then
    echo "kernel: the example can panic" >&2
    return 1
  fi
  # So is what the example does not use.
  if "$prefix-nm" "$library" 2>/dev/null | sed -n '/epitome_kernel-.*\.o:$/,/^$/p' | grep -E 'panicking|_fail|unwind'; then
    echo "kernel: a function of the library can panic" >&2
    return 1
  fi
}

# emulate PROGRAM ARGUMENT...: by QEMU, where each instruction takes the same time.
emulate() {
  local elf=$1
  shift
  timeout 120 "$@" -display none -monitor none -serial none -semihosting-config enable=on,target=native -icount shift=0 \
    -kernel "$elf" 2>&1
}

emulate_arm() {
  emulate "$1" qemu-system-arm -machine mps2-an386 -cpu cortex-m4
}

emulate_riscv() {
  emulate "$1" qemu-system-riscv32 -machine virt -bios none
}

measure_riscv() {
  if ! tool qemu-system-riscv32 qemu-system-misc; then
    skipped "RISC-V run" "qemu-system-riscv32 is not installed and could not be"
    return
  fi
  local name
  for name in riscv riscv-small; do
    emulate_riscv "$work/$name.elf" >"$work/$name.txt" || {
      cat "$work/$name.txt" >&2
      return 1
    }
  done
  cat "$work/riscv.txt" "$work/riscv-small.txt"
  echo "kernel: agent on RISC-V             flash B    RAM B  stack B"
  row "in C, default strategies" "$work/riscv.elf" "$work/riscv.txt"
  row "in C, without optional ones" "$work/riscv-small.elf" "$work/riscv-small.txt"
  local bytes
  bytes=$(stack "$work/riscv.txt")
  if [[ -z $bytes || $bytes -gt 8192 ]]; then
    echo "kernel: RISC-V: a stack of ${bytes:-unknown} B, of at most 8192" >&2
    return 1
  fi
}

# Flash, RAM and stack beside those of the same agent in Rust.
compare() {
  if ! tool qemu-system-arm qemu-system-arm; then
    skipped run "qemu-system-arm is not installed and could not be"
    return
  fi
  local firmware=../../../firmware name
  (cd "$firmware" && cargo build --release --locked --quiet)
  local pids=() pid
  cp "$target_dir/$device/release/epitome-firmware" "$work/rust.elf"
  for name in all small rust; do
    emulate_arm "$work/$name.elf" >"$work/$name.txt" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do
    wait "$pid" || {
      cat "$work"/{all,small,rust}.txt >&2
      return 1
    }
  done
  cat "$work/all.txt" "$work/small.txt"
  echo "kernel: agent                       flash B    RAM B  stack B"
  row "in Rust" "$work/rust.elf" "$work/rust.txt"
  row "in C, default strategies" "$work/all.elf" "$work/all.txt"
  row "in C, without optional ones" "$work/small.elf" "$work/small.txt"
  at_most_a_tenth_above flash "$(flash "$work/small.elf")" "$(flash "$work/rust.elf")"
  at_most_a_tenth_above stack "$(stack "$work/small.txt")" "$(stack "$work/rust.txt")"
}

row() {
  printf 'kernel: %-27s %7d  %7d  %7d\n' "$1" "$(flash "$2")" "$(size "$2" | awk 'NR == 2 { print $2 + $3 }')" \
    "$(stack "$3")"
}

flash() {
  size "$1" | awk 'NR == 2 { print $1 + $2 }'
}

stack() {
  sed -n 's/.*stack \([0-9]*\) B.*/\1/p' "$1"
}

at_most_a_tenth_above() {
  if [[ -z $2 || -z $3 || $(($2 * 10)) -gt $(($3 * 11)) ]]; then
    echo "kernel: $1: $2 B, more than a tenth above the $3 B of the program in Rust" >&2
    return 1
  fi
}

check_targets() {
  local target targets=()
  for target in thumbv6m-none-eabi riscv32imc-unknown-none-elf; do
    if has_target "$target"; then
      targets+=(--target "$target")
      echo "kernel: builds for $target"
    else
      skipped "$target" "the target is not installed and could not be added"
    fi
  done
  [[ ${#targets[@]} -eq 0 ]] || cargo build --release --locked --quiet "${targets[@]}"
}

check_code
check_host
check_device
check_riscv
check_targets
echo "kernel: ok, $SECONDS s"
