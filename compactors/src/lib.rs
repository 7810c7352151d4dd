//! Compaction strategies.
#![no_std]
