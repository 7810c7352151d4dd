//! `epitome session`: transcripts kept in a store, and compacted there.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use epitome::core::attribution::Retention;
use epitome::core::message::{PartView, Parts as _};
use epitome::core::{Basis, Outcome, Seq};
use epitome::std::history::{
    AppendToken, History, HistoryStore, Logged, SessionId, StoreErrorKind, open_store,
};
use epitome::std::message::Message;
use epitome::std::wire::openai_chat;
use futures::executor::block_on;
use serde::Serialize;

use crate::amount::grouped;
use crate::args::{InputArgs, OneSessionArgs, PlanArgs, SessionArgs, SessionCommand, StoreArgs};
use crate::budget::Asked;
use crate::failure::{Failure, Result, code};
use crate::report::{Figures, Picture, Report, counts, details};
use crate::scan;
use crate::strategy::Strategies;
use crate::transcript::Input;

type Store = Arc<dyn HistoryStore>;

pub(crate) fn run(args: &SessionArgs) -> Result<ExitCode> {
    let text = match &args.command {
        SessionCommand::List { store, json } => list(&open(store)?, *json),
        SessionCommand::Show(session) => show(session),
        SessionCommand::Import { input, session, append, tokenizer } => {
            import(input, session, *append, tokenizer)
        }
        SessionCommand::Compact { session, plan, dry_run } => compact(session, plan, *dry_run),
        SessionCommand::Log(session) => log(session),
        SessionCommand::Delete(session) => delete(session),
    }?;
    writeln!(io::stdout().lock(), "{text}").map_err(|error| Failure::stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn open(args: &StoreArgs) -> Result<Store> {
    open_store(&args.store).map_err(Failure::from)
}

fn id(args: &OneSessionArgs) -> SessionId {
    SessionId::new(args.session.as_str())
}

/// An existing session.
fn history(args: &OneSessionArgs, tokenizer: &str) -> Result<History> {
    let (store, id) = (open(&args.store)?, id(args));
    block_on(store.load(&id)).map_err(|error| match error.kind() {
        StoreErrorKind::NotFound => Failure::input(format!(
            "there is no session {:?} in {}: see `epitome session list`",
            args.session, args.store.store
        )),
        _ => error.into(),
    })?;
    Ok(block_on(History::open(store, id, scan::counter(tokenizer)?.into()))?)
}

fn list(store: &Store, json: bool) -> Result<String> {
    #[derive(Serialize)]
    struct Row {
        session: String,
        messages: u64,
        live_messages: u64,
        live_tokens: u64,
        compactions: u64,
    }

    let mut rows = Vec::new();
    let mut after = None;
    loop {
        let page = block_on(store.list(after.as_ref(), PAGE))?;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        rows.extend(page.iter().map(|info| Row {
            session: info.id.as_str().to_owned(),
            messages: info.head.0,
            live_messages: info.live_messages,
            live_tokens: info.live_tokens,
            compactions: info.revision.0,
        }));
    }
    if json {
        return to_json(&rows);
    }
    let mut text =
        format!("{:<32}{:>10}{:>10}{:>12}{:>10}", "session", "messages", "visible", "tokens", "revision");
    for row in &rows {
        text += &format!(
            "\n{:<32}{:>10}{:>10}{:>12}{:>10}",
            row.session.escape_debug().to_string(),
            grouped(row.messages),
            grouped(row.live_messages),
            grouped(row.live_tokens),
            row.compactions
        );
    }
    Ok(text)
}

fn show(args: &OneSessionArgs) -> Result<String> {
    let history = history(args, "estimate")?;
    if args.json {
        let messages: Vec<_> = history.projection().map(raw).collect::<Result<_>>()?;
        return to_json(&messages);
    }
    let index = history.index();
    let mut text = String::new();
    for position in index.projection().flatten() {
        if let Some(live) = history.live().get(position as usize) {
            text += &line(live.key, &live.entry.message, live.entry.count.tokens.0, "");
        }
    }
    let (messages, groups, tokens) =
        (u64::from(index.messages()), u64::from(index.group_count()), index.tokens());
    let sums =
        format!("{} messages in {} groups, {} tokens", grouped(messages), grouped(groups), grouped(tokens));
    Ok(format!("{text}{sums}; revision {}, {} in the log", history.revision(), grouped(history.head().0)))
}

fn import(input: &InputArgs, args: &OneSessionArgs, append: bool, tokenizer: &str) -> Result<String> {
    let source = Input::open(input)?;
    if input.each {
        return Err(Failure::input("a session holds one conversation: name it with --at instead of --each"));
    }
    let mut messages = Vec::new();
    source.conversation(input)?.for_each(|message| {
        let read = openai_chat::read(message.text());
        messages.push(read.map_err(|error| Failure::wire(source.path(), &error))?);
        Ok(())
    })?;
    let counter = scan::counter(tokenizer)?;
    let mut history = block_on(History::open(open(&args.store)?, id(args), counter.into()))?;
    if history.head() != Seq(0) && !append {
        return Err(Failure::input(format!(
            "session {:?} has {} messages already: give another name, or --append",
            args.session,
            history.head()
        )));
    }
    let count = messages.len() as u64;
    let token = AppendToken::new(format!("import-at-{}", history.head()));
    block_on(history.append(&token, messages))?;
    if args.json {
        return to_json(
            &serde_json::json!({ "session": args.session, "imported": count, "messages": history.head().0 }),
        );
    }
    let tokens = grouped(history.index().tokens());
    Ok(format!("{} messages imported into {:?}; {tokens} tokens are visible", grouped(count), args.session))
}

fn compact(args: &OneSessionArgs, plan_args: &PlanArgs, dry_run: bool) -> Result<String> {
    let strategies = Strategies::parse(&plan_args.strategy)?;
    let mut history = history(args, &plan_args.tokenizer)?;
    let asked = Asked::new(&plan_args.budget, history.index().tokens())?;
    let (report, record) = plan(&history, &asked, &strategies)?;
    if let Some(record) = record.filter(|_| !dry_run) {
        block_on(history.commit(&record))?;
    }
    if args.json { to_json(&report) } else { Ok(report.to_text(&Picture::for_stdout())) }
}

type Planned = (Report, Option<epitome::std::history::CompactionRecord>);

fn plan(history: &History, asked: &Asked, strategies: &Strategies) -> Result<Planned> {
    let view = history.index();
    let floors = epitome::core::floors(view, strategies.with(|strategy| strategy.protection()));
    let mut cells = Vec::new();
    let outcome = match asked.is_due(view.tokens()) {
        false => None,
        true => Some(
            strategies.with(|strategy| history.plan(&asked.budget, asked.pass(), strategy, &mut cells))?,
        ),
    };
    let (plan, reason) = match &outcome {
        None => (None, Some("not_due")),
        Some(Outcome::Unchanged(why)) => (None, Some(why.as_str())),
        Some(Outcome::Planned(plan)) => (Some(plan), None),
    };
    let details = details(view, plan);
    let messages = u64::from(view.messages());
    let after =
        plan.map_or(messages, |plan| plan.projection().map(|run| u64::from(run.end - run.start)).sum());
    let prefix = plan.map(|plan| plan.stable_prefix());
    let tokens_after = plan.map_or(view.tokens(), |plan| plan.tokens_after());
    let counted = history.live().first().map(|live| live.entry.count.clone());
    let report = Report {
        path: String::new(),
        messages_before: messages,
        messages_after: after,
        tokens_before: view.tokens(),
        tokens_after,
        token_basis: counted.as_ref().map_or(Basis::Estimated, |count| count.basis),
        tokenizer: counted.map_or_else(String::new, |count| count.counter.to_string()),
        groups: counts(&details),
        stable_prefix_messages: prefix.map_or(messages, |prefix| u64::from(prefix.messages)),
        stable_prefix_tokens: prefix.map_or(view.tokens(), |prefix| prefix.tokens),
        budget: Figures::new(asked, floors),
        goal_missed: reason != Some("not_due") && asked.budget.goal().is_some_and(|goal| tokens_after > goal),
        strategies: strategies.names().to_vec(),
        unchanged_reason: reason,
        repair: None,
        verdicts: details.iter().map(|group| group.verdict).collect(),
        groups_detail: details,
        turns: view.turn().0,
        defaults: asked.defaults,
    };
    let record = plan.map(|plan| history.record(plan, &strategies.names().join(",")));
    Ok((report, record))
}

fn log(args: &OneSessionArgs) -> Result<String> {
    let (store, id) = (open(&args.store)?, id(args));
    let mut text = String::new();
    let (mut next, mut hidden) = (Some(Seq(0)), 0);
    while let Some(from) = next {
        let page = block_on(store.log(&id, from..Seq(u64::MAX), PAGE))?;
        next = page.next;
        for logged in &page.messages {
            hidden += u64::from(logged.hidden_by.is_some());
            text += &log_line(logged, args.json)?;
        }
    }
    if args.json { Ok(text.trim_end().to_owned()) } else { Ok(format!("{text}{hidden} of these are hidden")) }
}

fn log_line(logged: &Logged, json: bool) -> Result<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        seq: u64,
        hidden_by: Option<u64>,
        anchor: u64,
        turn: u32,
        tokens: u32,
        message: &'a serde_json::value::RawValue,
    }

    let Logged { seq, entry, hidden_by, .. } = logged;
    if json {
        let message = &*raw(&entry.message)?;
        let (hidden_by, anchor, turn) = (hidden_by.map(|revision| revision.0), entry.anchor.0, entry.turn.0);
        let line = Line { seq: seq.0, hidden_by, anchor, turn, tokens: entry.count.tokens.0, message };
        return serde_json::to_string(&line)
            .map(|line| line + "\n")
            .map_err(|error| Failure::new(code::IO, error.to_string()));
    }
    let hidden = hidden_by.map_or_else(String::new, |revision| format!("hidden by {revision}"));
    Ok(line(
        *seq,
        &entry.message,
        entry.count.tokens.0,
        if entry.orphan { "answers no call" } else { &hidden },
    ))
}

fn delete(args: &OneSessionArgs) -> Result<String> {
    let deleted = block_on(open(&args.store)?.delete(&id(args)))?;
    match deleted {
        true if args.json => to_json(&serde_json::json!({ "session": args.session, "deleted": true })),
        true => Ok(format!("session {:?} is deleted", args.session)),
        false => {
            Err(Failure::input(format!("there is no session {:?} in {}", args.session, args.store.store)))
        }
    }
}

/// How many rows are asked of a store at a time.
const PAGE: u32 = 500;
/// How much of a message's text a line shows.
const PREVIEW_CHARS: usize = 60;

/// A message on one line.
fn line(seq: Seq, message: &Message, tokens: u32, note: &str) -> String {
    let mut preview = String::new();
    message.for_each_part(&mut |part| match part {
        PartView::Text(text) => preview.push_str(text),
        PartView::ToolCall(call) => preview += &format!("{}({}) ", call.name, call.arguments),
        PartView::ToolResult(result) => result.content.for_each_part(&mut |part| {
            if let PartView::Text(text) = part {
                preview.push_str(text);
            }
        }),
        _ => {}
    });
    let short: String = preview
        .chars()
        .map(|shown| if shown.is_control() { ' ' } else { shown })
        .take(PREVIEW_CHARS)
        .collect();
    let pinned = if message.attribution().retention == Retention::Pinned { " pinned" } else { "" };
    let role = message.role().as_str();
    format!("{seq:>6}  {role:<10}{:>9}  {note:<14}{short}{pinned}\n", grouped(u64::from(tokens)))
}

/// A message as Chat Completions writes it.
fn raw(message: &Message) -> Result<Box<serde_json::value::RawValue>> {
    let text = openai_chat::write(message).map_err(|error| Failure::input(error.to_string()))?;
    serde_json::value::RawValue::from_string(text.into_owned())
        .map_err(|error| Failure::input(error.to_string()))
}

fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string_pretty(value).map_err(|error| Failure::new(code::IO, error.to_string()))
}
