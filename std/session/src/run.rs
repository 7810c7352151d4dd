//! Runs: one exchange with an agent, from the user's input to the stored result.
//!
//! A [`Run`] is an explicit object. The caller calls the model, with any SDK or none. The run has the request, its
//! size, the calls that wait for results, and the messages to store.
//!
//! ```text
//! begin      compaction of what is stored, if it is due; providers in order
//! prompt     compaction of all that would be sent, if it is due; the request, legal for its provider
//! record     the model's answer, and what the provider reported of it
//! answer     results of tools; then prompt again
//! finish     providers in reverse order, histories store; compaction of what is stored, if it is due
//! ```
//!
//! A run does not call a model; [`Agent`](crate::agent::Agent) does.
//!
//! ```
//! use epitome_std::message::Message;
//! use epitome_std::run::{ModelResponse, Run, RunOptions, RunSettings};
//! use epitome_std::session::AgentSession;
//!
//! # futures::executor::block_on(async {
//! let (settings, mut session) = (RunSettings::new("helper"), AgentSession::with_id("s-1"));
//! for (says, answers) in [("I am Alice.", "Hello, Alice."), ("Who am I?", "You are Alice.")] {
//!     let options = RunOptions::default();
//!     let mut run = Run::begin(&settings, &mut session, vec![Message::user(says)], &options).await?;
//!     let prompt = run.prompt().await?;
//!     // Here the model is called with `prompt.messages` and `prompt.tools`.
//!     run.record(prompt.handle, ModelResponse::new(vec![Message::assistant(answers)])).await?;
//!     run.finish().await?;
//! }
//! let options = RunOptions::default();
//! let mut run = Run::begin(&settings, &mut session, vec![Message::user("Sure?")], &options).await?;
//! assert_eq!(run.prompt().await?.messages.len(), 5);
//! # Ok::<(), epitome_std::run::RunError>(())
//! # }).unwrap();
//! ```

mod approval;
mod branch;
mod compact;
mod compactions;
mod due;
mod error;
mod event;
mod finish;
mod handles;
mod live;
mod own_tools;
mod partial;
mod pass;
mod payback;
mod pending;
mod prompt;
mod recall;
mod refused;
mod render;
mod rewind;
mod scratch;
mod served;
mod settings;
mod spill;
mod stream;
mod working;

pub use approval::ApprovalState;
pub use branch::branch;
pub use compact::compact;
pub use compactions::Compactions;
pub use error::{PendingCall, RunError};
pub use event::{Point, RunEvent, Skipped};
pub use finish::RunOutcome;
pub use live::Run;
pub(crate) use partial::Left;
pub use partial::{CallDelta, Delta};
pub use prompt::{ModelResponse, Prompt, RequestHandle};
pub use recall::RecallTool;
pub use rewind::rewind;
pub use settings::{Persistence, RunOptions, RunSettings};
