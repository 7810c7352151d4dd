//! A compactor from a function over messages.

use core::fmt;
use core::future::Future;
use core::ops::Deref;
use core::pin::Pin;

use async_trait::async_trait;
use epitome_core::attribution::{Authority, SourceKind};
use epitome_core::message::Role;
use epitome_core::{Group, measure_message};

use super::{CompactionCx, CompactionOptions, CompactionOutcome, Compactor, UnchangedReason};
use crate::history::inner::{PendingRecord, covered, joined};
use crate::history::{CompactionRecord, History, Summary, TokenCount};
use crate::message::{Attribution, Message, Str};
use crate::session::SessionError;

/// Compacts with a function from messages to messages. Other frameworks call such a function a compactor.
///
/// The function gets the visible messages in order, and returns the messages that stay, in the same order. Returned
/// messages that it got are kept. All new messages that it returns become one message of the model, a summary in place
/// of the missing messages. The summary stands at the place of the first missing message, has at most the lowest
/// authority of the missing messages, and names them as its sources.
///
/// The function may leave out any message: an instruction, the first request, the newest step, or a request whose
/// answer stays. It has to return only open work: the last request of the user, and calls and requests for approval
/// without an answer. A result without the open work is refused. Leading instructions and pins stay in any case,
/// because the author of the function may not know them.
///
/// The function is called whenever a compaction is due.
///
/// ```
/// use std::sync::Arc;
/// use epitome_std::compaction::{CompactionOptions, Held, MessagesCompactor};
/// use epitome_std::history::MemoryStore;
/// use epitome_std::message::Message;
/// use epitome_std::provider::{HistoryProvider, Providers};
/// use epitome_std::run::{ModelResponse, Run, RunOptions, RunSettings, compact};
/// use epitome_std::session::AgentSession;
///
/// // Keeps the first message and the last two, and says how many are missing.
/// let compactor = MessagesCompactor::new("brief", |messages: Vec<Held>, _options: CompactionOptions| async move {
///     let (last, missing) = (messages.len() - 2, messages.len() - 3);
///     let mut kept = vec![messages[0].clone()];
///     kept.push(Message::assistant(format!("({missing} messages left out)")).into());
///     kept.extend(messages.into_iter().skip(last));
///     Ok(kept)
/// });
///
/// # futures::executor::block_on(async {
/// let mut providers = Providers::default();
/// providers.push(HistoryProvider::new("memory", Arc::new(MemoryStore::new())))?;
/// let settings = RunSettings::new("helper").with_providers(providers);
/// let mut session = AgentSession::with_id("s-1");
/// for question in 0..5 {
///     let input = vec![Message::user(format!("Question {question}, and some words around it."))];
///     let mut run = Run::begin(&settings, &mut session, input, &RunOptions::default()).await?;
///     let prompt = run.prompt().await?;
///     run.record(prompt.handle, ModelResponse::new(vec![Message::assistant("An answer of some length.")])).await?;
///     run.finish().await?;
/// }
/// let result = compact(&settings, &mut session, &compactor, CompactionOptions::default()).await?;
/// assert_eq!((result.original_count, result.compacted_count), (10, 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub struct MessagesCompactor {
    name: Str,
    compact: Box<CompactMessages>,
}

type CompactMessages = dyn Fn(Vec<Held>, CompactionOptions) -> Answer + Send + Sync;
type Answer = Pin<Box<dyn Future<Output = Result<Vec<Held>, SessionError>> + Send>>;

/// A message for the function of a [`MessagesCompactor`]: a message that it got (or a clone of it), or a new message.
#[derive(Clone, PartialEq)]
pub struct Held {
    message: Message,
    /// The position among the visible messages; `None` for a new message.
    at: Option<usize>,
}

impl Held {
    /// Whether the message is new.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.at.is_none()
    }
}

impl From<Message> for Held {
    fn from(message: Message) -> Self {
        Self { message, at: None }
    }
}

impl Deref for Held {
    type Target = Message;

    fn deref(&self) -> &Message {
        &self.message
    }
}

impl MessagesCompactor {
    /// The compactor `name`, which calls `compact`.
    pub fn new<F, A>(name: impl Into<Str>, compact: F) -> Self
    where
        F: Fn(Vec<Held>, CompactionOptions) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Vec<Held>, SessionError>> + Send + 'static,
    {
        let compact = move |messages, options| -> Answer { Box::pin(compact(messages, options)) };
        Self { name: name.into(), compact: Box::new(compact) }
    }

    /// Record that hides the messages missing in `returned`; `None` if no message is missing.
    fn record(
        &self,
        history: &History,
        returned: Vec<Held>,
    ) -> Result<Option<CompactionRecord>, SessionError> {
        let (kept, new) = sorted_out(returned, history.live().len())?;
        let leaders = missing_groups(history, &kept)?;
        if leaders.is_empty() {
            return match new.is_empty() {
                true => Ok(None),
                false => Err(invalid("there is a new message, and nothing that it stands for: leave it out")),
            };
        }
        let hides = history.visible().covered_where(|group| leaders.contains(&group.leader()));
        let summaries: Vec<Summary> = summary_of(history, &leaders, &new)?.into_iter().collect();
        let (edits, strategy) = (Vec::new(), self.name.clone());
        let record = history.record_pending(&PendingRecord { hides, summaries, edits, strategy });
        let record = record.ok_or_else(|| invalid("nothing is missing"))?;
        if record.tokens_after >= record.tokens_before {
            return Err(invalid("the new messages are not smaller than what they stand for: shorten them"));
        }
        Ok(Some(record))
    }
}

#[async_trait]
impl Compactor for MessagesCompactor {
    fn name(&self) -> &str {
        &self.name
    }

    /// # Errors
    /// - `Invalid`, with the message and the remedy, if the returned messages are not in order or contain a message
    ///   twice.
    /// - `Invalid` if a part of a group is missing (a tool call, and not its result), or if open work is missing.
    /// - `Invalid` if the new messages are empty, contain something other than text, or are not smaller than the
    ///   messages that they replace.
    /// - Otherwise the error of the function or of the store.
    ///
    /// The history is then as it was.
    async fn compact(&self, cx: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError> {
        let (before, options) = (cx.measure(), cx.options().clone());
        let live = cx.history().live().iter().enumerate();
        let held =
            live.map(|(at, live)| Held { message: live.entry.message.clone(), at: Some(at) }).collect();
        let returned = (self.compact)(held, options).await?;
        match self.record(cx.history(), returned)? {
            None => Ok(CompactionOutcome::Unchanged(UnchangedReason::AllReturned)),
            Some(record) => {
                cx.history().commit(&record).await?;
                Ok(CompactionOutcome::Compacted(cx.result_since(before)))
            }
        }
    }
}

/// Separates the returned positions from the new messages.
fn sorted_out(returned: Vec<Held>, len: usize) -> Result<(Vec<bool>, Vec<Message>), SessionError> {
    let (mut kept, mut new, mut last) = (vec![false; len], Vec::new(), None);
    for held in returned {
        match held.at {
            None => new.push(held.message),
            Some(at) if last.is_some_and(|last| at <= last) => {
                let why = "was returned twice, or behind a later one: return what stays once, in its order";
                return Err(invalid_at(at, len, why));
            }
            Some(at) => {
                last = Some(at);
                *kept.get_mut(at).ok_or_else(|| {
                    invalid("a message of an earlier call was returned: return those of this one")
                })? = true;
            }
        }
    }
    Ok((kept, new))
}

/// The leaders of the groups to hide: groups without a kept message, except leading instructions and pins.
fn missing_groups(history: &History, kept: &[bool]) -> Result<Vec<u32>, SessionError> {
    let (mut leaders, mut leads) = (Vec::new(), true);
    let last_request = history.index().groups().rev().find(Group::is_request).map(|group| group.leader());
    for group in history.index().groups() {
        leads &= group.is_instruction();
        let positions = || group.positions().flatten().map(|at| at as usize);
        let is_kept = |at: &usize| kept.get(*at).copied().unwrap_or_default();
        let Some(missing) = positions().find(|at| !is_kept(at)) else { continue };
        if positions().any(|at| is_kept(&at)) {
            let why = "is missing, and another one of its group was returned: return a call with all its results, or none of it";
            return Err(invalid_at(missing, kept.len(), why));
        }
        if group.is_open() {
            let why = "is missing, whose call or request for approval has no answer yet: return it";
            return Err(invalid_at(missing, kept.len(), why));
        }
        if Some(group.leader()) == last_request {
            return Err(invalid_at(
                missing,
                kept.len(),
                "is missing, the last request of the user: return it",
            ));
        }
        if !leads && !group.is_pinned() {
            leaders.push(group.leader());
        }
    }
    Ok(leaders)
}

/// Summary of the missing groups: the new messages, as one.
fn summary_of(history: &History, leaders: &[u32], new: &[Message]) -> Result<Option<Summary>, SessionError> {
    if new.is_empty() {
        return Ok(None);
    }
    let parts: Vec<_> = new.iter().flat_map(Message::parts).cloned().collect();
    let is_text = |part: &crate::message::Part| matches!(part, crate::message::Part::Text(text) if !text.trim().is_empty());
    if parts.is_empty() || !parts.iter().all(is_text) {
        return Err(invalid("a new message is empty, or holds something but text"));
    }
    let groups = history.index().groups().filter(|group| leaders.contains(&group.leader()));
    let positions: Vec<u32> =
        groups.flat_map(|group| group.positions().flatten().collect::<Vec<_>>()).collect();
    let hidden = || positions.iter().filter_map(|at| history.live().get(*at as usize));
    let covers = joined(hidden().flat_map(covered).collect());
    let Some(key) = covers.first().map(|range| range.first) else { return Ok(None) };
    let least = Authority::min_of(hidden().map(|live| live.entry.message.attribution().authority));
    let authority = Authority::min_of([Authority::Assistant, least]);
    let attribution = Attribution::new("", SourceKind::Compaction, authority).with_derived_from(covers);
    let message = Message::new(Role::Assistant, parts).with_attribution(attribution);
    let amount = measure_message(&message, history.counter());
    let count = TokenCount::new(amount.tokens, amount.basis, history.counter().name().into());
    Ok(Some(Summary::new(key, message, count)))
}

fn invalid(what: &str) -> SessionError {
    SessionError::invalid(format!("what the compactor's function returned: {what}"))
}

/// Error about the message at position `at`. The text counts from 1.
fn invalid_at(at: usize, len: usize, what: &str) -> SessionError {
    invalid(&format!("message {} of {len} {what}", at.saturating_add(1)))
}

impl fmt::Debug for MessagesCompactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessagesCompactor").field("name", &self.name.as_str()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("role", &self.message.role())
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}
