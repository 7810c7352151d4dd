//! `epitome stats`: the contents of a transcript, and their price.

mod by;
mod compacted;
mod compare;
mod session;

use epitome::core::message::{MessageView as _, PartView, Role};
use epitome::core::{Basis, TokenCounter, Tokens, count_message, measure_each};
use epitome::models::Prices;
use serde::Serialize;

use crate::amount::{counted, grouped};
use crate::args::StatsArgs;
use crate::failure::{ExitCode, Result};
use crate::model;
use crate::output::{self, all_to_json};
use crate::report::{place_of, share};
use crate::scan::{self, ESTIMATE, Groups};
use crate::silent::Silent;
use crate::transcript::{Input, Transcript};

use compacted::Compacted;

/// Contents of one conversation. Sizes are in tokens, by the exact counter unless a field names another.
#[derive(Debug, Serialize)]
struct Stats {
    path: String,
    format: &'static str,
    messages: u64,
    turns: u32,
    groups: u32,
    steps: u32,
    calls: u64,
    orphan_results: u64,
    tokens: u64,
    token_basis: Basis,
    tokenizer: String,
    tokens_estimated: u64,
    estimate_error_percent: f64,
    by_role: Vec<Share>,
    by_kind: Vec<Share>,
    largest: Vec<Large>,
    /// Price of a compaction, if the prices of the model are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    compacted: Option<Compacted>,
    /// The other contents of a session file.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<session::Session>,
}

/// Number and tokens of one role or kind of part.
#[derive(Debug, Clone, Serialize)]
struct Share {
    name: &'static str,
    count: u64,
    tokens: u64,
}

/// One of the largest messages.
#[derive(Debug, Clone, Serialize)]
struct Large {
    message: u64,
    role: Role,
    tokens: u32,
}

/// The counter that others are compared with.
const REFERENCE: &str = "o200k_base";
/// Number of the largest messages that are named.
const LARGEST: usize = 5;

pub(crate) fn run(args: &StatsArgs) -> Result<ExitCode> {
    if let Some(by) = args.by {
        return by::run(args, by);
    }
    if args.tokenizer.as_deref() == Some(compare::ALL) {
        return compare::run(args, model::find(&args.model)?.as_ref());
    }
    output::say(&report(args)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Reports the contents of each conversation.
pub(crate) fn report(args: &StatsArgs) -> Result<String> {
    let found = model::find(&args.model)?;
    let counter = model::counter(found.as_ref(), args.tokenizer.as_deref(), REFERENCE)?;
    // The estimator is for the same model, with another tokenizer.
    let estimator = model::counter(found.as_ref(), Some(ESTIMATE), ESTIMATE)?;
    let prices = found.as_ref().and_then(|model| model.prices);
    let input = Input::open_to_look(&args.input)?;
    let transcripts = input.transcripts(&args.input)?;
    let stats = transcripts
        .into_iter()
        .map(|transcript| Stats::of(transcript, (&*counter, &*estimator), prices.as_ref()))
        .collect::<Result<Vec<_>>>()?;
    to_output(args, &stats, "\n")
}

/// A report on one conversation.
trait OneReport: Serialize {
    /// The place of the conversation in its file.
    fn path(&self) -> &str;
    fn to_text(&self) -> String;
}

/// The reports in the form that the options select. Texts are joined by `between`.
fn to_output(args: &StatsArgs, reports: &[impl OneReport], between: &str) -> Result<String> {
    let each = args.input.part.each;
    Ok(match reports {
        all if args.json => all_to_json(all, each)?,
        [only] if !each => only.to_text(),
        all => {
            let all = all.iter().enumerate();
            let texts = all.map(|(at, one)| format!("{}\n{}", place_of(at, one.path()), one.to_text()));
            texts.collect::<Vec<_>>().join(between)
        }
    })
}

impl Stats {
    fn of(
        mut transcript: Transcript<'_>,
        (counter, estimator): (&dyn TokenCounter, &dyn TokenCounter),
        prices: Option<&Prices>,
    ) -> Result<Self> {
        let session = session::Session::of(&transcript);
        let (mut index, mut at) = (Groups::new(), 0);
        let (mut roles, mut kinds) = (Shares::default(), Shares::default());
        let (mut tokens, mut estimated, mut basis) = (0, 0, counter.basis());
        let (mut largest, mut silent) = (Vec::new(), Silent::default());
        transcript.for_each(|message| {
            silent.look(at, message);
            let amount = measure_each(message, counter, &mut |part, size| kinds.add(kind_of(part), size));
            let size = amount.tokens;
            basis = basis.min(amount.basis);
            scan::push(&mut index, message, size)?;
            tokens += size.as_u64();
            estimated += count_message(message, estimator).as_u64();
            roles.add(message.role().as_str(), size);
            note_large(&mut largest, Large { message: at, role: message.role(), tokens: size.0 });
            at += 1;
            Ok(())
        })?;
        silent.tell(transcript.pointer());
        let view = index.view();
        let orphans = view.groups().filter(|group| group.kind() == epitome::core::GroupKind::Orphan).count();
        let error = if tokens == 0 { 0.0 } else { (estimated as f64 / tokens as f64 - 1.0) * 100.0 };
        Ok(Self {
            path: transcript.pointer().to_owned(),
            format: transcript.format().as_str(),
            messages: at,
            turns: view.turn().0,
            groups: view.group_count(),
            steps: view.steps(),
            calls: kinds.count_of(CALL),
            orphan_results: orphans as u64,
            tokens,
            token_basis: basis,
            tokenizer: counter.name().to_owned(),
            tokens_estimated: estimated,
            estimate_error_percent: (error * 10.0).round() / 10.0,
            by_role: roles.0,
            by_kind: kinds.0,
            largest,
            compacted: prices.and_then(|prices| Compacted::of(view, prices)),
            session,
        })
    }
}

impl OneReport for Stats {
    fn path(&self) -> &str {
        &self.path
    }

    fn to_text(&self) -> String {
        let mut text = format!(
            "{}, {}, {}, {}, {}, {} without a call\n",
            counted(self.messages, "message"),
            counted(self.turns.into(), "turn"),
            counted(self.groups.into(), "group"),
            counted(self.steps.into(), "step"),
            counted(self.calls, "call"),
            counted(self.orphan_results, "result")
        );
        text += &format!(
            "{} ({} by {}); the estimate is {}, {:+.1} %\n\n",
            counted(self.tokens, "token"),
            self.token_basis.as_str(),
            self.tokenizer,
            grouped(self.tokens_estimated),
            self.estimate_error_percent
        );
        for (title, shares) in [("role", &self.by_role), ("part", &self.by_kind)] {
            text += &format!("{title:<14}{:>8}{:>12}{:>8}\n", "count", "tokens", "share");
            for Share { name, count, tokens } in shares {
                let (count, part) = (grouped(*count), share(*tokens, self.tokens));
                text += &format!("{name:<14}{count:>8}{:>12}{part:>8}\n", grouped(*tokens));
            }
            text.push('\n');
        }
        text += "largest messages, counted from 0\n";
        for Large { message, role, tokens } in &self.largest {
            let part = share(u64::from(*tokens), self.tokens);
            text += &format!(
                "  message {message:<6}{:<12}{:>10}{part:>8}\n",
                role.as_str(),
                grouped(u64::from(*tokens))
            );
        }
        text += &self.compacted.map(Compacted::to_text).unwrap_or_default();
        text += &self.session.as_ref().map(session::Session::to_text).unwrap_or_default();
        text
    }
}

/// Sums by name, in the order of first appearance.
#[derive(Debug, Default)]
struct Shares(Vec<Share>);

impl Shares {
    fn add(&mut self, name: &'static str, tokens: Tokens) {
        let at = self.0.iter().position(|share| share.name == name).unwrap_or_else(|| {
            self.0.push(Share { name, count: 0, tokens: 0 });
            self.0.len() - 1
        });
        if let Some(share) = self.0.get_mut(at) {
            share.count += 1;
            share.tokens += tokens.as_u64();
        }
    }

    fn count_of(&self, name: &str) -> u64 {
        self.0.iter().find(|share| share.name == name).map_or(0, |share| share.count)
    }
}

/// The name of a part that is a call.
const CALL: &str = "tool call";

fn kind_of(part: PartView<'_>) -> &'static str {
    match part {
        PartView::Text(_) => "text",
        PartView::Reasoning(_) => "reasoning",
        PartView::ToolCall(_) => CALL,
        PartView::ToolResult(_) => "tool result",
        PartView::Media(_) => "media",
        PartView::ApprovalRequest(_) | PartView::ApprovalResponse(_) => "approval",
        PartView::Compaction(_) => "compaction",
        _ => "other",
    }
}

fn note_large(largest: &mut Vec<Large>, message: Large) {
    let at = largest.iter().position(|other| other.tokens < message.tokens).unwrap_or(largest.len());
    if at < LARGEST {
        largest.insert(at, message);
        largest.truncate(LARGEST);
    }
}
