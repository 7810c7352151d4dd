//! From a gap in a plan to the artefact of a service.

use core::panic::AssertUnwindSafe;
use core::pin::pin;
use core::time::Duration;
use std::borrow::Cow;
use std::boxed::Box;
use std::format;
use std::sync::Arc;
use std::vec::Vec;

use async_trait::async_trait;
use epitome_core::attribution::SourceKind;
use epitome_core::message::Role;
use epitome_core::{Tokens, measure_message};
use epitome_std::compaction::{Costs, KeptSession};
use epitome_std::message::{Message, Part, Str};
use epitome_std::models::Prices;
use epitome_std::session::{SessionError, Tool};
use futures::FutureExt as _;
use futures::future::{Either, select};
use futures_timer::Delay;
use tracing::debug;

use super::{
    Artefact, Capabilities, CompactionService, Position, ServiceError, ServiceErrorKind, ServiceRequest,
};
use crate::SummaryError;
use crate::gap::{FillGap, GapCx, GapFilling, TextFiller};

/// Calls a service with retries, and checks its result.
#[derive(Debug, Clone)]
pub(super) struct ServiceWriter {
    pub(super) service: Arc<dyn CompactionService>,
    pub(super) able: Capabilities,
    pub(super) deadline: Duration,
    /// Instructions of the conversation, for passes without a request.
    pub(super) instructions: Vec<Message>,
    pub(super) tools: Vec<Tool>,
    pub(super) model: Str,
    /// Writes the text for other providers, if
    /// [`Managed::with_portable_text`](super::Managed::with_portable_text) was called.
    pub(super) text: Option<TextFiller>,
}

/// Time limit of all requests for one artefact, with retries and pauses. The service reads a whole window and
/// writes thousands of tokens.
pub(super) const DEADLINE: Duration = Duration::from_secs(120);

/// Maximum number of retries of a failed request, as in the providers' own SDKs.
const RETRIES_MAX: u32 = 2;

/// Pause before the first retry, if the service asks for none; twice as long before the second. Source:
/// `INITIAL_RETRY_DELAY` of openai-python and anthropic-sdk-python.
const PAUSE: Duration = Duration::from_millis(500);

/// Maximum tokens of the text in an artefact, the same as for a summary.
const TEXT_TOKENS_MAX: Tokens = Tokens(4_000);

#[async_trait]
impl FillGap for ServiceWriter {
    /// Requests the artefact for the groups of the gap.
    async fn fill(&self, cx: GapCx<'_, '_>) -> Result<GapFilling, SessionError> {
        // The text comes first: its failure does not waste the more expensive artefact.
        let text = match &self.text {
            Some(filler) => {
                let mut cx = cx;
                cx.gap.allowance = cx.gap.allowance.min(TEXT_TOKENS_MAX);
                Some(filler.write(&cx).await?.0)
            }
            None => None,
        };
        let (compaction, own) = (cx.compaction, &self.model);
        let model = Some(compaction.model()).filter(|model| !model.is_empty()).unwrap_or(own);
        let mut artefact = {
            let mut input = self.input(&cx, model);
            input.tell(cx.late, model);
            let messages: Vec<&Message> = input.messages.iter().map(|message| &**message).collect();
            let tools = compaction.request().map_or(&*self.tools, |live| &live.tools);
            let request = ServiceRequest::new(&messages)
                .with_instructions(&input.instructions)
                .replacing_from(input.replaced_from)
                .with_tools(tools)
                .with_model(model);
            self.ask(Question::Messages(request), compaction.costs()).await?
        };
        if artefact.part.model.is_empty() {
            artefact.part.model = model.clone();
        }
        if let Some(text) = text.filter(|_| artefact.part.text.is_empty()) {
            artefact.part.text = text.into();
        }
        let losses = core::mem::take(&mut artefact.losses);
        let message = artefact.into_message();
        let tokens = measure_message(&message, compaction.as_history().counter()).tokens;
        if tokens > cx.gap.allowance {
            return Err(cx.no_summary(SummaryError::TooLarge { tokens, allowance: cx.gap.allowance }));
        }
        Ok(GapFilling { parts: message.into_parts(), tokens, losses })
    }

    fn price(&self, prices: &Prices, covered: u64, tokens: u64, _: Option<u64>) -> u64 {
        prices.summary(covered, tokens)
    }
}

impl ServiceWriter {
    /// The input of the service, up to the end of a gap.
    fn input<'a>(&self, cx: &GapCx<'a, '_>, model: &str) -> Input<'a> {
        let (gap, history, live) = (cx.gap, cx.compaction.as_history(), cx.compaction.request());
        let index = history.index();
        let last = gap.groups().last().map_or(gap.first.leader(), |group| group.leader());
        let mut groups = Vec::new();
        groups.resize(history.live().len(), None);
        for group in index.groups() {
            for position in group.positions().flatten() {
                groups.get_mut(position as usize).into_iter().for_each(|of| *of = Some(group));
            }
        }
        let mut input = Input::default();
        for position in index.projection().flatten() {
            let Some(group) = groups.get(position as usize).copied().flatten() else { continue };
            let Some(message) = history.live().get(position as usize).map(|live| &live.entry.message) else {
                continue;
            };
            let instruction = is_instruction(message);
            // An open call is answered later, and stays.
            if instruction || group.leader() > last || group.is_open() {
                input.instructions.extend(instruction.then(|| message.clone()));
                continue;
            }
            if group.leader() < gap.first.leader() {
                if self.able.position == Position::First {
                    continue;
                }
                input.replaced_from = input.messages.len().saturating_add(1);
            }
            input.messages.push(message.for_model(model));
        }
        if input.instructions.is_empty() {
            let live = live.into_iter().flat_map(|live| &live.messages);
            input.instructions = live.filter(|message| is_instruction(message)).cloned().collect();
        }
        if input.instructions.is_empty() {
            input.instructions.clone_from(&self.instructions);
        }
        input
    }

    /// Compacts a session that the service has stored.
    pub(super) async fn write_kept(&self, session: &KeptSession<'_>) -> Result<Message, ServiceError> {
        Ok(self.ask(Question::Kept(session), session.costs).await?.into_message())
    }

    /// Calls the service until there is a result, the deadline, or an error that a retry cannot fix.
    async fn ask(&self, question: Question<'_>, costs: &Costs) -> Result<Artefact, ServiceError> {
        let asked = pin!(self.ask_again(question, costs));
        match select(asked, Delay::new(self.deadline)).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => {
                let context = format!("{}: no answer in {:?}", self.service.provider(), self.deadline);
                Err(ServiceError::new(ServiceErrorKind::Timeout, context))
            }
        }
    }

    async fn ask_again(&self, question: Question<'_>, costs: &Costs) -> Result<Artefact, ServiceError> {
        let (mut tries, mut pause) = (0, PAUSE);
        loop {
            let error = match self.ask_once(question, costs).await {
                Ok(artefact) => return Ok(artefact),
                Err(error) => error,
            };
            let wait = match error.kind() {
                ServiceErrorKind::RateLimited { retry_after: Some(wait) } => *wait,
                _ => pause,
            };
            if !error.kind().is_transient() || tries == RETRIES_MAX || wait >= self.deadline {
                return Err(error);
            }
            debug!(provider = self.service.provider(), kind = ?error.kind(), ?wait, "asking the service again");
            Delay::new(wait).await;
            (tries, pause) = (tries.saturating_add(1), pause.saturating_mul(2));
        }
    }

    async fn ask_once(&self, question: Question<'_>, costs: &Costs) -> Result<Artefact, ServiceError> {
        let asked = async {
            match question {
                Question::Messages(request) => self.service.compact(&request).await,
                Question::Kept(session) => self.service.compact_kept(session).await,
            }
        };
        let asked = AssertUnwindSafe(asked).catch_unwind().await;
        let answer = asked.unwrap_or_else(|_| Err(self.malformed("the service panicked")));
        let usage = match &answer {
            Ok(artefact) => artefact.usage,
            Err(error) => error.usage().copied(),
        };
        usage.into_iter().for_each(|usage| costs.tell(usage));
        self.checked(answer?)
    }

    /// The artefact, if a history can hold it.
    fn checked(&self, artefact: Artefact) -> Result<Artefact, ServiceError> {
        let Artefact { part, before, .. } = &artefact;
        if part.provider != self.service.provider() {
            return Err(self.malformed("what it left is another provider's"));
        }
        if part.text.trim().is_empty() && part.opaque.as_deref().is_none_or(str::is_empty) {
            return Err(self.malformed("what it left is empty"));
        }
        let may_stand = |part: &Part| matches!(part, Part::Text(_) | Part::Media(_) | Part::Unknown(_));
        match before.iter().all(may_stand) {
            true => Ok(artefact),
            false => Err(self.malformed("what it left holds more than what was said")),
        }
    }

    fn malformed(&self, what: &str) -> ServiceError {
        let context = format!("{}: {what}", self.service.provider());
        ServiceError::new(ServiceErrorKind::Malformed, context)
    }
}

/// The target of a compaction: messages in the request, or a session that the service has stored.
#[derive(Clone, Copy)]
enum Question<'a> {
    Messages(ServiceRequest<'a>),
    Kept(&'a KeptSession<'a>),
}

/// The input of a service.
#[derive(Default)]
struct Input<'a> {
    instructions: Vec<Message>,
    messages: Vec<Cow<'a, Message>>,
    replaced_from: usize,
}

impl<'a> Input<'a> {
    /// Adds late answers to calls that the summaries in the input cover, each with its call. They come directly
    /// behind the last of these summaries, which they continue.
    fn tell(&mut self, late: &'a [Vec<Message>], model: &str) {
        let is_summary = |message: &Cow<'_, Message>| message.attribution().source == SourceKind::Compaction;
        let replaced = self.messages.get(self.replaced_from..).unwrap_or_default();
        let behind = replaced.iter().rposition(is_summary).map_or(0, |last| last.saturating_add(1));
        let at = self.replaced_from.saturating_add(behind);
        let told = late.iter().flatten().map(|message| message.for_model(model));
        self.messages.splice(at..at, told);
    }
}

const fn is_instruction(message: &Message) -> bool {
    matches!(message.role(), Role::System | Role::Developer)
}
