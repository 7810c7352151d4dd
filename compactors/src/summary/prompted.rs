//! A summary by a model.

use core::cmp::Ordering;
use core::fmt;
use std::boxed::Box;
use std::format;
use std::string::String;
use std::sync::Arc;
use std::vec::Vec;

use async_trait::async_trait;
use epitome_core::message::CallKind;
use epitome_core::{MESSAGE_TOKENS, Tokens, WINDOW_DEFAULT, measure_message};
use epitome_std::agent::{ChatClient, ChatRequest};
use epitome_std::message::{Message, Part};
use epitome_std::models::Prices;
use serde_json::{Map, Value};

use super::transcript::{write_group, write_tagged};
use super::{Instructions, Summarizer, SummaryError, SummaryRequest, checked};

/// A [`Summarizer`] that calls a model through the caller's own client.
///
/// The request is separate from the conversation. It has one system message with the [`Instructions`], and one user
/// message with the previous summary, if there is one, and a transcript of the messages since. Tags within the
/// messages are escaped, so that they cannot open or close a piece of the transcript. The request has no tools.
///
/// A span that does not fit the summarizer's window takes several calls, at most eight, each with the summary so
/// far. Texts are shortened if eight calls would not be enough. If an answer is too long, there is one retry.
///
/// ```
/// use std::sync::Arc;
///
/// use async_trait::async_trait;
/// use epitome_compactors::{Instructions, PromptedSummarizer};
/// use epitome_std::agent::{ChatClient, ChatRequest, ClientError};
/// use epitome_std::message::Message;
/// use epitome_std::run::ModelResponse;
///
/// struct Client;
///
/// #[async_trait]
/// impl ChatClient for Client {
///     async fn complete(&self, request: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
///         // ... send `request` ...
///         Ok(ModelResponse::new(vec![Message::assistant("Goal: to ship.")]))
///     }
/// }
///
/// let summarizer = PromptedSummarizer::new(Arc::new(Client)).with_model("small-and-fast").with_window(64_000);
/// ```
pub struct PromptedSummarizer {
    client: Arc<dyn ChatClient>,
    model: String,
    window: u64,
    instructions: Instructions,
    options: Map<String, Value>,
    prefix: bool,
}

/// Maximum number of calls for one summary.
const PASSES_MAX: usize = 8;
/// Maximum bytes of a text in a transcript: tool results are long, and their middle has the least content.
const TEXT_BYTES_MAX: usize = 16_384;
/// Minimum bytes to which a text is cut.
const TEXT_BYTES_MIN: usize = 64;

impl PromptedSummarizer {
    /// A summarizer with `client`, the conversation's model, and a window of 128,000 tokens. If the conversation's
    /// model is not known, the request names no model, and the client uses its default.
    #[must_use]
    pub fn new(client: Arc<dyn ChatClient>) -> Self {
        Self {
            client,
            model: String::new(),
            window: WINDOW_DEFAULT,
            instructions: Instructions::default(),
            options: Map::new(),
            prefix: false,
        }
    }

    /// Sets the model that writes summaries. It need not be the agent's.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = model.into();
        self
    }

    /// Sets the window of the model in tokens, including its answer.
    #[must_use]
    pub const fn with_window(mut self, tokens: u64) -> Self {
        self.window = tokens;
        self
    }

    /// Sets the instructions.
    #[must_use]
    pub fn with_instructions(mut self, instructions: Instructions) -> Self {
        self.instructions = instructions;
        self
    }

    /// Sets the options for the client, such as a temperature.
    #[must_use]
    pub fn with_options(mut self, options: Map<String, Value>) -> Self {
        self.options = options;
        self
    }

    /// Sends the summary request as a continuation of the conversation where possible. If the compaction is
    /// made before a request to the same model, the summary request has the messages of that request, up to the last
    /// one to be summarized, and then the instructions. The request begins byte for byte as the last one did, tools and options included, so that the
    /// provider's prompt cache covers it.
    ///
    /// It sends a separate request in all other cases: there is no such call, the call is for another model, or the
    /// continuation does not fit the window. It also sends one if the model refuses, calls a tool, or exceeds the
    /// allowance.
    #[must_use]
    pub const fn within_conversation(mut self) -> Self {
        self.prefix = true;
        self
    }

    /// Tokens of the window for a transcript, with a previous summary of the greatest length.
    fn room(&self, request: &SummaryRequest<'_>) -> u64 {
        let told = self.instructions.text(request, true, request.allowance);
        let previous = request.previous.map_or(Tokens(0), |text| request.counter.count(text));
        let known = previous.max(request.allowance);
        // A whole may have slightly more tokens than its pieces.
        let others = [request.counter.count(&told), known, request.allowance];
        let others = others.iter().map(|tokens| tokens.as_u64()).sum::<u64>().saturating_add(TAGS_TOKENS);
        self.window.saturating_sub(others).saturating_mul(15) / 16
    }

    /// The transcript, in pieces that fit the window.
    fn pieces(&self, request: &SummaryRequest<'_>) -> Result<Vec<String>, SummaryError> {
        let room = self.room(request);
        let at = |max| pieces_of(request, room, max).filter(|pieces| pieces.len() <= PASSES_MAX);
        if let Some(pieces) = at(TEXT_BYTES_MAX) {
            return Ok(pieces);
        }
        // The shortest texts are tried first, to find out whether any length fits.
        let mut fits = at(TEXT_BYTES_MIN).ok_or(SummaryError::DoesNotFit { room })?;
        let (mut short, mut long) = (TEXT_BYTES_MIN, TEXT_BYTES_MAX);
        while long / 2 > short {
            let middle = short.midpoint(long);
            match at(middle) {
                Some(pieces) => (fits, short) = (pieces, middle),
                None => long = middle,
            }
        }
        Ok(fits)
    }

    async fn ask(
        &self,
        of: &SummaryRequest<'_>,
        previous: Option<&str>,
        transcript: &str,
        allowance: Tokens,
    ) -> Result<String, SummaryError> {
        let mut asked = String::new();
        if let Some(previous) = previous {
            write_tagged("summary", previous, &mut asked);
        }
        asked.push_str(&format!("<transcript>\n{transcript}</transcript>"));
        let told = self.instructions.text(of, previous.is_some(), allowance);
        let size = [told.as_str(), &asked].map(|text| of.counter.count(text).as_u64()).iter().sum::<u64>();
        let framing = u64::from(MESSAGE_TOKENS).saturating_mul(2).saturating_add(of.allowance.as_u64());
        if size.saturating_add(framing) > self.window {
            return Err(SummaryError::DoesNotFit { room: self.room(of) });
        }
        let messages = [Message::system(told), Message::user(asked)];
        let model = if self.model.is_empty() { of.model } else { &self.model };
        let request = ChatRequest::without_tools(&messages, &self.options, model);
        self.answer(of, &request).await
    }

    /// The text of the model's response to a request.
    async fn answer(
        &self,
        of: &SummaryRequest<'_>,
        request: &ChatRequest<'_>,
    ) -> Result<String, SummaryError> {
        let response = self.client.complete(request).await.map_err(SummaryError::Failed)?;
        response.usage.into_iter().for_each(|usage| of.spent(usage));
        let parts = || response.messages.iter().flat_map(|message| message.parts());
        if parts().any(|part| matches!(part, Part::ToolCall(_))) {
            return Err(SummaryError::ToolCall);
        }
        let texts =
            parts().filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None });
        let text: Vec<_> = texts.collect();
        checked(&text.join("\n")).map(String::from)
    }

    /// Requests the summary as a continuation of the conversation; `None` if this is not possible or failed.
    async fn ask_within(&self, of: &SummaryRequest<'_>) -> Option<String> {
        let live = of.live.filter(|_| self.prefix)?;
        if !self.model.is_empty() && self.model != live.model.as_str() {
            return None;
        }
        let mut messages = up_to_span(of, &live.messages)?;
        messages.push(Message::user(self.instructions.within(of)));
        let sizes = messages.iter().map(|message| measure_message(message, of.counter).tokens.as_u64());
        let tools = live.tools.iter().flat_map(|tool| {
            let parameters = format!("{}", tool.parameters);
            [tool.name.as_str(), tool.description.as_str(), &parameters]
                .map(|text| of.counter.count(text).as_u64())
        });
        let framing =
            TAGS_TOKENS.saturating_mul(live.tools.len() as u64).saturating_add(of.allowance.as_u64());
        if sizes.chain(tools).sum::<u64>().saturating_add(framing) > self.window {
            return None;
        }
        let request =
            ChatRequest::without_tools(&messages, &live.options, &live.model).with_tools(&live.tools);
        let text = self.answer(of, &request).await.ok()?;
        (of.counter.count(&text) <= of.allowance).then_some(text)
    }
}

/// The sent messages up to the end of the span, if all calls in them have their results. `None` if the span is not
/// found: its last message was sent in another form, or the span occurs twice.
fn up_to_span(of: &SummaryRequest<'_>, sent: &[Message]) -> Option<Vec<Message>> {
    let begin = sent.get(..=end_of(of.groups, sent)?)?;
    let parts = || begin.iter().flat_map(|message| message.parts());
    let calls =
        parts().filter(|part| matches!(part, Part::ToolCall(call) if call.kind == CallKind::Function));
    let results = parts().filter(|part| matches!(part, Part::ToolResult(_)));
    (calls.count() == results.count()).then(|| begin.to_vec())
}

/// The position of the last message of these groups. If equal messages occur, the position with the longest match
/// before it; `None` if two matches are equally long.
fn end_of(groups: &[Vec<&Message>], sent: &[Message]) -> Option<usize> {
    let last = groups.last()?.last()?;
    let (mut found, mut longest, mut is_twice) = (None, 0, false);
    for (end, _) in sent.iter().enumerate().filter(|(_, message)| message == last) {
        let before = sent.get(..=end).unwrap_or_default().iter().rev();
        let span = groups.iter().flatten().rev();
        let common = before.zip(span).take_while(|(sent, of)| sent == *of).count();
        match common.cmp(&longest) {
            Ordering::Greater => (found, longest, is_twice) = (Some(end), common, false),
            Ordering::Equal => is_twice = true,
            Ordering::Less => {}
        }
    }
    found.filter(|_| !is_twice)
}

/// Tokens of the tags around the pieces of a request and its two messages.
const TAGS_TOKENS: u64 = 64;

/// The groups in pieces of at most `room` tokens, each group within one piece; `None` if a group is larger.
fn pieces_of(request: &SummaryRequest<'_>, room: u64, max: usize) -> Option<Vec<String>> {
    let (mut pieces, mut piece, mut size) = (Vec::new(), String::new(), 0_u64);
    for group in request.groups {
        let mut text = String::new();
        write_group(group, max, &mut text);
        let tokens = request.counter.count(&text).as_u64();
        if tokens > room {
            return None;
        }
        if size.saturating_add(tokens) > room {
            pieces.push(core::mem::take(&mut piece));
            size = 0;
        }
        piece.push_str(&text);
        size = size.saturating_add(tokens);
    }
    pieces.push(piece);
    Some(pieces)
}

#[async_trait]
impl Summarizer for PromptedSummarizer {
    fn name(&self) -> &str {
        if self.model.is_empty() { "prompted" } else { &self.model }
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<String, SummaryError> {
        if let Some(text) = self.ask_within(request).await {
            return Ok(text);
        }
        let allowance = request.allowance;
        let mut so_far = request.previous.map(String::from);
        for transcript in self.pieces(request)? {
            let mut asked = allowance;
            let mut text = self.ask(request, so_far.as_deref(), &transcript, asked).await?;
            if request.counter.count(&text) > allowance {
                asked = Tokens(allowance.0 / 2);
                text = self.ask(request, so_far.as_deref(), &transcript, asked).await?;
            }
            let tokens = request.counter.count(&text);
            if tokens > allowance {
                return Err(SummaryError::TooLarge { tokens, allowance });
            }
            so_far = Some(text);
        }
        Ok(so_far.unwrap_or_default())
    }

    /// A continuation of the conversation reads the conversation from the cache. A model set by name counts as
    /// another model.
    fn price(&self, prices: &Prices, covered: u64, tokens: u64, cached: Option<u64>) -> u64 {
        match cached.filter(|_| self.prefix && self.model.is_empty()) {
            Some(cached) => prices.summary_within(cached, tokens),
            None => prices.summary(covered, tokens),
        }
    }
}

impl fmt::Debug for PromptedSummarizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptedSummarizer")
            .field("model", &self.model)
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use epitome_std::agent::ClientError;
    use epitome_std::run::ModelResponse;

    use super::*;

    /// With 150,000 cached tokens, a summary of 4,000 tokens as a continuation of the conversation costs less than half
    /// of a separate request.
    #[test]
    fn within_the_conversation_a_summary_reads_from_the_cache() {
        let prices = Prices::new(100, 5_000);
        let beside = PromptedSummarizer::new(Arc::new(Nobody));
        let within = PromptedSummarizer::new(Arc::new(Nobody)).within_conversation();
        let asked = prices.summary(125_000, 4_000);
        assert_eq!(beside.price(&prices, 125_000, 4_000, Some(150_000)), asked);
        assert_eq!(within.price(&prices, 125_000, 4_000, Some(150_000)), 15_000_000 + 20_000_000);
        assert_eq!(within.price(&prices, 125_000, 4_000, None), asked);
        // A model set by name may differ from the conversation's.
        let other = within.with_model("small-and-fast");
        assert_eq!(other.price(&prices, 125_000, 4_000, Some(150_000)), asked);
    }

    struct Nobody;

    #[async_trait]
    impl ChatClient for Nobody {
        async fn complete(&self, _: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
            Ok(ModelResponse::default())
        }
    }

    fn end(span: &[&str], sent: &[&str]) -> Option<usize> {
        let messages = |texts: &[&str]| texts.iter().map(|text| Message::user(*text)).collect::<Vec<_>>();
        let (span, sent) = (messages(span), messages(sent));
        end_of(&span.iter().map(|message| std::vec![message]).collect::<Vec<_>>(), &sent)
    }

    #[test]
    fn a_span_ends_where_it_is_and_not_where_the_same_is_said_again() {
        assert_eq!(end(&["go", "yes"], &["be brief", "go", "yes", "more?", "yes"]), Some(2));
        assert_eq!(end(&["more?", "yes"], &["be brief", "go", "yes", "more?", "yes", "bye"]), Some(4));
        assert_eq!(end(&["yes", "yes"], &["go", "yes", "yes", "no", "yes"]), Some(2));
        // A message that was sent in another form does not belong to the match.
        assert_eq!(end(&["changed", "go", "yes"], &["as sent", "go", "yes", "more?", "yes"]), Some(2));
        assert_eq!(end(&["go"], &["be brief", "go", "yes"]), Some(1));
    }

    #[test]
    fn a_span_that_is_there_twice_or_not_at_all_is_not_found() {
        assert_eq!(end(&["yes"], &["yes", "go", "yes"]), None);
        assert_eq!(end(&["go", "yes"], &["go", "yes", "go", "yes"]), None);
        assert_eq!(end(&["go", "no"], &["go", "yes"]), None);
        assert_eq!(end(&[], &["go"]), None);
    }
}
