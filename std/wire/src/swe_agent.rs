//! Trajectories of SWE-agent (`.traj`): the messages under `history`.
//!
//! They are messages of Chat Completions, and [`openai_chat`](super::openai_chat) reads them. `trajectory` and its
//! `query`, which repeat the prompt of every step, are no messages. The writer supports all changes.

mod spec;

pub(crate) use spec::SPEC;

#[cfg(test)]
mod tests;
