//! Trajectories of SWE-agent (`.traj`): the messages under `history`.
//!
//! They are messages of Chat Completions, read as by [`openai_chat`](super::openai_chat). `trajectory` and its `query`, which repeat the prompt of every step, are no messages.
//! All of it is written back.

mod spec;

pub(crate) use spec::SPEC;

#[cfg(test)]
mod tests;
