//! Stand-ins for shortened parts, made without a model.

mod excerpt;
mod handles;
mod json;

use epitome_core::message::{PartView, Parts};
use epitome_core::{
    CLAMP_MARKER, Clamp, ElisionGap, FillError, IndexedPart, PartKind, Placeholders, Plan, ReadyPlan,
    StandIn, StandIns, TokenCounter, Tokens,
};
use epitome_message::Str;

use self::excerpt::excerpt;
pub(super) use self::handles::Handle;
pub use self::handles::Handles;

/// The notes in the place of elided parts. Keep them short: a plan refuses a note that is longer than the allowance of
/// the strategy. In a message of a user, a store refuses a note that is more than one word in brackets.
///
/// ```
/// use epitome_history::Notes;
///
/// let mut notes = Notes::default();
/// assert_eq!(notes.tool_result.as_str(), "[cleared]");
/// notes.tool_result = "[gone]".into();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notes {
    /// In the place of all content of a tool result: `[cleared]`.
    pub tool_result: Str,
    /// In the place of the arguments of a call: `{}`, because providers require JSON there.
    pub tool_input: Str,
    /// In the place of an image, a sound, a video or a document: `[media]`.
    pub media: Str,
    /// In the place of a huge text: `[cleared]`.
    pub text: Str,
}

const MEDIA: &str = "[media]";

const NO_ARGUMENTS: &str = "{}";

impl Default for Notes {
    fn default() -> Self {
        Self {
            tool_result: "[cleared]".into(),
            tool_input: NO_ARGUMENTS.into(),
            media: MEDIA.into(),
            text: "[cleared]".into(),
        }
    }
}

impl Notes {
    fn placeholders(&self, counter: &dyn TokenCounter) -> Placeholders<'_> {
        Placeholders::new()
            .with_tool_result(note(&self.tool_result, counter))
            .with_tool_input(note(&self.tool_input, counter))
            .with_media(note(&self.media, counter))
            .with_text(note(&self.text, counter))
    }

    /// The note in the place of a part, and its size. The note includes the number of the message if the allowance
    /// permits it.
    fn note(
        &self,
        gap: &ElisionGap<'_>,
        handle: Option<Handle>,
        counter: &dyn TokenCounter,
    ) -> (String, Tokens) {
        let note = match gap.part.kind() {
            PartKind::ToolInput => &self.tool_input,
            PartKind::Media => &self.media,
            PartKind::Text => &self.text,
            _ => &self.tool_result,
        };
        let with_handle = handle.and_then(|handle| match gap.part.kind() {
            PartKind::ToolResult => Some(handle.behind(note)),
            PartKind::Text => handle.in_word(note),
            _ => None,
        });
        let fitting = with_handle.and_then(|note| {
            let tokens = counter.count_up_to(&note, gap.allowance)?;
            Some((note, tokens))
        });
        fitting.unwrap_or_else(|| (note.as_str().to_owned(), counter.count(note)))
    }
}

fn note<'t>(text: &'t Str, counter: &dyn TokenCounter) -> StandIn<'t> {
    StandIn::new(text.as_str(), counter.count(text))
}

/// Fills `plan` with `notes` for elided parts and with excerpts for clamped parts; `then` receives the filled plan.
///
/// `part_text` returns the text of a part by the position of its message and its ordinal. It is called for clamped
/// parts only: see [`part_text`]. A plan with summaries needs [`fill_with`].
///
/// # Errors
/// [`FillError`]: `Missing` if the plan has summaries, or a clamped part has no text; `TooLarge` if a note is longer
/// than the allowance of the strategy.
pub fn fill<'a, T>(
    plan: Plan<'a>,
    notes: &Notes,
    counter: &dyn TokenCounter,
    part_text: impl FnMut(u32, u32) -> Option<String>,
    then: impl FnOnce(ReadyPlan<'a, '_>) -> T,
) -> Result<T, FillError> {
    fill_with(plan, notes, &[], counter, part_text, then)
}

/// [`fill`] with the summaries in the place of groups, in the order of [`Plan::summaries`].
///
/// # Errors
/// The errors of [`fill`]; `Missing` also if a summary is missing, and `TooLarge` if one is longer than its allowance.
pub fn fill_with<'a, T>(
    plan: Plan<'a>,
    notes: &Notes,
    summaries: &[StandIn<'_>],
    counter: &dyn TokenCounter,
    part_text: impl FnMut(u32, u32) -> Option<String>,
    then: impl FnOnce(ReadyPlan<'a, '_>) -> T,
) -> Result<T, FillError> {
    fill_named(plan, notes, summaries, counter, part_text, |_| None, then)
}

/// [`fill_with`], with the number that `handle` returns for a part in the note of that part.
pub(super) fn fill_named<'a, T>(
    plan: Plan<'a>,
    notes: &Notes,
    summaries: &[StandIn<'_>],
    counter: &dyn TokenCounter,
    mut part_text: impl FnMut(u32, u32) -> Option<String>,
    handle: impl Fn(&IndexedPart<'_>) -> Option<Handle>,
    then: impl FnOnce(ReadyPlan<'a, '_>) -> T,
) -> Result<T, FillError> {
    let texts: Vec<_> = plan
        .clamps()
        .map_while(|gap| {
            let text = part_text(gap.part.position(), gap.part.ordinal())?;
            Some(clamped_named(&text, (gap.part.kind(), gap.clamp), handle(&gap.part), counter))
        })
        .collect();
    // If no part has a number, one note for each kind is enough.
    let is_named = plan.elisions().any(|gap| handle(&gap.part).is_some());
    let elisions = plan.elisions().filter(|_| is_named);
    let noted: Vec<_> = elisions.map(|gap| notes.note(&gap, handle(&gap.part), counter)).collect();
    let clamps: Vec<_> = texts.iter().map(|(text, tokens)| StandIn::new(text, *tokens)).collect();
    let noted: Vec<_> = noted.iter().map(|(text, tokens)| StandIn::new(text, *tokens)).collect();
    let stand_ins = StandIns::new(notes.placeholders(counter)).with_notes(&noted).with_clamps(&clamps);
    Ok(then(plan.fill(stand_ins.with_summaries(summaries))?))
}

/// The text of a part of `message`: the arguments of a call, or all texts of a tool result, with `[media]` for each
/// other part of the result. `None` if the part has no text.
pub fn part_text<M: Parts + ?Sized>(message: &M, ordinal: u32) -> Option<String> {
    let (mut at, mut found) = (0_u32, None);
    message.for_each_part(&mut |part| {
        if at == ordinal {
            found = match part {
                PartView::Text(text) => Some(text.to_owned()),
                PartView::ToolCall(call) => Some(call.arguments.to_owned()),
                PartView::ToolResult(result) => {
                    let mut all = String::new();
                    result.content.for_each_part(&mut |part| match part {
                        PartView::Text(text) => all.push_str(text),
                        _ => {
                            let before = if all.is_empty() || all.ends_with('\n') { "" } else { "\n" };
                            all.extend([before, MEDIA, "\n"]);
                        }
                    });
                    Some(all)
                }
                _ => None,
            };
        }
        at = at.saturating_add(1);
    });
    found
}

/// The text that [`fill`] puts in the place of a clamped part of this kind, and its size. Arguments or a result in JSON
/// become shorter JSON. Other arguments and results become the lines with the most information. A text keeps its ends.
/// Arguments in JSON become `{}` if no part of them fits.
pub fn clamped_text(
    text: &str,
    kind: PartKind,
    clamp: Clamp,
    counter: &dyn TokenCounter,
) -> (String, Tokens) {
    clamped_named(text, (kind, clamp), None, counter)
}

/// [`clamped_text`] with the number of the message, if there is room for the number.
pub(super) fn clamped_named(
    text: &str,
    (kind, clamp): (PartKind, Clamp),
    handle: Option<Handle>,
    counter: &dyn TokenCounter,
) -> (String, Tokens) {
    let max = clamp.tokens_max();
    // A result may be large because of its media alone. Its text is then not cut.
    if let Some(tokens) = counter.count_up_to(text, max).filter(|_| !text.trim().is_empty()) {
        return (text.to_owned(), tokens);
    }
    let named = handle.map(Handle::in_note);
    let tried = || named.as_deref().into_iter().chain([""]);
    let lines = || tried().find_map(|named| excerpt(text, clamp, named, counter));
    let shorter = match kind {
        PartKind::ToolResult => {
            tried().find_map(|named| json::shortened(text, max, named, counter)).or_else(lines)
        }
        PartKind::ToolInput => json::shortened_arguments(text, max, counter).or_else(lines),
        _ => None,
    };
    shorter.unwrap_or_else(|| cut(text, clamp, handle, counter))
}

/// The head and the tail of `text` with [`CLAMP_MARKER`] between them, cut between characters, and the size of the
/// whole. The marker includes the number of the message, if there is room for it.
fn cut(text: &str, clamp: Clamp, handle: Option<Handle>, counter: &dyn TokenCounter) -> (String, Tokens) {
    let head = |bytes: usize| text.get(..text.floor_char_boundary(bytes)).unwrap_or_default();
    let tail = |bytes: usize| {
        text.get(text.ceil_char_boundary(text.len().saturating_sub(bytes))..).unwrap_or_default()
    };
    let fits = |text: &str, tokens: Tokens| counter.count(text) <= tokens;
    // A result may be large because of its media alone. Its text is then not cut.
    if let Some(tokens) = counter.count_up_to(text, clamp.tokens_max()).filter(|_| !text.trim().is_empty()) {
        return (text.to_owned(), tokens);
    }
    let mut head_bytes = longest(text.len(), |bytes| fits(head(bytes), clamp.head));
    let mut tail_bytes =
        longest(text.len().saturating_sub(head_bytes), |bytes| fits(tail(bytes), clamp.tail));
    let mut marker = handle.and_then(|handle| handle.in_word(CLAMP_MARKER));
    loop {
        let whole = [head(head_bytes), marker.as_deref().unwrap_or(CLAMP_MARKER), tail(tail_bytes)].concat();
        let tokens = counter.count(&whole);
        // Pieces that fit may have more tokens together, because a tokenizer may split the joined text differently.
        if tokens <= clamp.tokens_max() || (marker.is_none() && head_bytes.max(tail_bytes) == 0) {
            return (whole, tokens);
        }
        if head_bytes.max(tail_bytes) == 0 {
            marker = None;
        }
        (head_bytes, tail_bytes) = (head_bytes / 8 * 7, tail_bytes / 8 * 7);
    }
}

/// The largest number of 0..=`max` that `fits`. The cost grows with the result, not with `max`. `fits` should hold for
/// all smaller numbers.
fn longest(max: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, 64.min(max));
    while high > low && fits(high) {
        low = high;
        high = high.saturating_mul(2).min(max);
    }
    while low.saturating_add(1) < high {
        let middle = low.midpoint(high);
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use epitome_core::message::{MediaKind, Role};
    use epitome_core::{ClassEstimator, Seq};
    use epitome_message::{Media, MediaSource, Message, Part, ToolCall, ToolResult, UnknownPart};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn media_of_a_result_are_noted_and_no_short_text_beside_them_is_cut() {
        let image = Part::Media(Media::new(MediaKind::Image, "image/png", MediaSource::Uri("file-1".into())));
        let counter = ClassEstimator::new();
        let clamped = |parts: Vec<Part>| {
            let result = Part::ToolResult(ToolResult::new("c1", parts));
            let text = part_text(&Message::new(Role::Tool, vec![result]), 0).unwrap();
            let (cut, tokens) = cut(&text, Clamp { head: Tokens(40), tail: Tokens(40) }, None, &counter);
            assert_eq!(tokens, counter.count(&cut));
            cut
        };
        let text = |text: &str| Part::Text(text.into());
        assert_eq!(clamped(vec![image.clone()]), "[media]\n");
        assert_eq!(clamped(vec![text("clicked OK"), image.clone(), image]), "clicked OK\n[media]\n[media]\n");
        let unknown =
            Part::Unknown(UnknownPart::new("anthropic", "search_result", r#"{"type":"search_result"}"#));
        assert_eq!(clamped(vec![text("see results"), unknown]), "see results\n[media]\n");
        assert_eq!(clamped(vec![text("a"), text("b")]), "ab");
        assert!(!clamped(vec![]).trim().is_empty(), "a blank text stands for nothing");
        assert!(clamped(vec![text(&"word ".repeat(1_000))]).contains(CLAMP_MARKER));
    }

    #[test]
    fn arguments_stay_json_or_are_an_excerpt_of_the_text_that_a_tool_takes() {
        let counter = ClassEstimator::new();
        let cut = |text: &str, tokens: u32| {
            clamped_text(text, PartKind::ToolInput, Clamp::within(Tokens(tokens)), &counter).0
        };
        let call =
            ToolCall::new("c1", "write", format!(r#"{{"path":"a.rs","content":"{}"}}"#, "x ".repeat(900)));
        let text = part_text(&Message::new(Role::Assistant, vec![Part::ToolCall(call.clone())]), 0).unwrap();
        assert_eq!(text, call.arguments.as_str());
        assert_eq!(cut("{\"a\":1}", 90), "{\"a\":1}");
        assert!(cut(&text, 90).starts_with(r#"{"path":"a.rs","content":"x x"#), "{}", cut(&text, 90));
        // A list has no shorter form, and neither has an object with too many members.
        let members: String = (0..500).map(|n| format!("\"member {n}\":{n},")).collect();
        for text in [format!("[{}0]", "1,".repeat(900)), format!("{{{}\"z\":0}}", members)] {
            assert_eq!(cut(&text, 20), "{}");
        }
        let patch: String = (0..90).map(|n| format!("+line {n} of a patch\n")).collect();
        let left = cut(&patch, 90);
        assert!(left.starts_with("+line 0 ") && left.contains(" lines cut]"), "{left}");
    }

    proptest! {
        #[test]
        fn a_cut_text_has_its_head_its_tail_and_no_more_than_it_may(
            text in "([a-z ]{0,30}|[日本語]{0,20}|👩‍👩‍👧‍👦|[0-9a-f]{0,64}){0,40}", head in 0_u32..60, tail in 0_u32..60,
            number in prop::option::of(0_u64..=u64::MAX),
        ) {
            let counter = ClassEstimator::new();
            let clamp = Clamp { head: Tokens(head), tail: Tokens(tail) };
            prop_assume!(counter.count(&text) > clamp.tokens_max());
            let handle = number.map(|number| Handle::new(Seq(number)));
            let (cut, tokens) = cut(&text, clamp, handle, &counter);
            prop_assert_eq!(tokens, counter.count(&cut));
            prop_assert!(tokens <= clamp.tokens_max());
            // If the ends of a text leave no room for the number, the marker has none.
            let named = handle.and_then(|handle| handle.in_word(CLAMP_MARKER));
            let with_number = named.and_then(|marker| cut.split_once(marker.as_str()));
            let (head, tail) = with_number.or_else(|| cut.split_once(CLAMP_MARKER)).unwrap();
            prop_assert!(text.starts_with(head) && text.ends_with(tail) && head.len() + tail.len() <= text.len());
        }

        #[test]
        fn the_longest_that_fits_is_found(max in 0_usize..5_000, limit in 0_usize..6_000) {
            prop_assert_eq!(longest(max, |size| size <= limit), max.min(limit));
        }
    }
}
