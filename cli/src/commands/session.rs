//! `epitome session`: transcripts kept in a store, and compacted there.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use console::{Alignment, measure_text_width, pad_str};
use epitome::core::attribution::Retention;
use epitome::core::message::{PartView, Parts as _};
use epitome::core::{Basis, Seq};
use epitome::std::history::{
    AppendToken, History, HistoryStore, Logged, SessionId, StoreErrorKind, open_store,
};
use epitome::std::message::Message;
use epitome::std::wire::openai_chat;
use futures::executor::block_on;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::amount::{counted, grouped};
use crate::args::{InputArgs, OneSessionArgs, PlanArgs, SessionArgs, SessionCommand, StoreArgs};
use crate::budget::Asked;
use crate::failure::{Failure, Result, code};
use crate::report::{Decided, Facts, Picture, Report};
use crate::scan;
use crate::strategy::Strategies;
use crate::transcript::Input;

type Store = Arc<dyn HistoryStore>;

pub(crate) fn run(args: &SessionArgs) -> Result<ExitCode> {
    let text = match &args.command {
        SessionCommand::List { store, json } => list(store, *json),
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

/// Whether a store may be made where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Create,
    Refuse,
}

fn open(args: &StoreArgs, missing: Missing) -> Result<Store> {
    let url = &args.store;
    let Some(path) = url.strip_prefix("sqlite:") else {
        let what = match url.split_once(':') {
            Some(("memory", _)) => "a store in memory ends with this program".to_owned(),
            // What stands after a scheme may hold a password: it is not repeated.
            Some((scheme, _)) => format!("there is no store {scheme:?}"),
            None => "the store has no kind".to_owned(),
        };
        return Err(Failure::input(format!("--store: {what}; expected sqlite:PATH")));
    };
    if missing == Missing::Refuse && !path.is_empty() && !Path::new(path).exists() {
        return Err(Failure::input(format!(
            "--store: there is no file {path}; `epitome session import` creates it"
        )));
    }
    open_store(url).map_err(|error| in_store(args, error))
}

fn in_store(args: &StoreArgs, error: impl Into<Failure>) -> Failure {
    error.into().during(&args.store)
}

fn id(args: &OneSessionArgs) -> SessionId {
    SessionId::new(args.session.as_str())
}

fn no_session(args: &OneSessionArgs) -> Failure {
    let (id, store) = (&args.session, &args.store.store);
    Failure::input(format!(
        "there is no session {id:?} in {store}; `epitome session list --store {store}` lists them"
    ))
}

/// An existing session.
fn history(args: &OneSessionArgs, tokenizer: &str) -> Result<History> {
    let (store, id) = (open(&args.store, Missing::Refuse)?, id(args));
    block_on(store.load(&id)).map_err(|error| match error.kind() {
        StoreErrorKind::NotFound => no_session(args),
        _ => in_store(&args.store, error),
    })?;
    block_on(History::open(store, id, scan::counter(tokenizer)?.into()))
        .map_err(|error| in_store(&args.store, error))
}

fn list(args: &StoreArgs, json: bool) -> Result<String> {
    #[derive(Serialize)]
    struct Row {
        session: String,
        messages: u64,
        live_messages: u64,
        live_tokens: u64,
        revision: u64,
    }

    let store = open(args, Missing::Refuse)?;
    let mut rows = Vec::new();
    let mut after = None;
    loop {
        let page = block_on(store.list(after.as_ref(), PAGE)).map_err(|error| in_store(args, error))?;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        rows.extend(page.iter().map(|info| Row {
            session: info.id.as_str().to_owned(),
            messages: info.head.0,
            live_messages: info.live_messages,
            live_tokens: info.live_tokens,
            revision: info.revision.0,
        }));
    }
    if json {
        return to_json(&rows);
    }
    let names: Vec<_> = rows.iter().map(|row| row.session.escape_debug().to_string()).collect();
    let width = names.iter().map(|name| measure_text_width(name)).chain([TITLE.len()]).max();
    let width = width.unwrap_or(0).min(NAME_WIDTH_MAX);
    let mut text =
        format!("{TITLE:<width$}{:>10}{:>10}{:>12}{:>10}", "messages", "visible", "tokens", "revision");
    for (row, name) in rows.iter().zip(&names) {
        text += &format!(
            "\n{}{:>10}{:>10}{:>12}{:>10}",
            pad_str(name, width, Alignment::Left, None),
            grouped(row.messages),
            grouped(row.live_messages),
            grouped(row.live_tokens),
            row.revision
        );
    }
    Ok(text)
}

const TITLE: &str = "session";
/// A longer name moves its own row to the right, not all of them.
const NAME_WIDTH_MAX: usize = 48;

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
    let sums = format!(
        "{} in {}, {}",
        counted(messages, "message"),
        counted(groups, "group"),
        counted(tokens, "token")
    );
    Ok(format!("{text}{sums}; revision {}, {} in the log", history.revision(), grouped(history.head().0)))
}

fn import(input: &InputArgs, args: &OneSessionArgs, append: bool, tokenizer: &str) -> Result<String> {
    let source = Input::open(input)?;
    if input.each {
        return Err(Failure::input("a session holds one conversation: name it with --at instead of --each"));
    }
    if args.session.is_empty() {
        return Err(Failure::input("--session: a session needs a name"));
    }
    let mut messages = Vec::new();
    source.conversation(input)?.for_each(|message| {
        let read = openai_chat::read(message.text());
        messages.push(read.map_err(|error| Failure::wire(source.path(), &error))?);
        Ok(())
    })?;
    let counter = scan::counter(tokenizer)?;
    let store = open(&args.store, Missing::Create)?;
    let stored = |error| in_store(&args.store, error);
    let mut history = block_on(History::open(store, id(args), counter.into())).map_err(stored)?;
    if history.head() != Seq(0) && !append {
        return Err(Failure::input(format!(
            "session {:?} has {} already: give another name, or --append",
            args.session,
            counted(history.head().0, "message")
        )));
    }
    let count = messages.len() as u64;
    let token = AppendToken::new(format!("import-at-{}", history.head()));
    block_on(history.append(&token, messages)).map_err(stored)?;
    if args.json {
        return to_json(
            &serde_json::json!({ "session": args.session, "imported": count, "messages": history.head().0 }),
        );
    }
    let (count, tokens) = (counted(count, "message"), counted(history.index().tokens(), "token"));
    Ok(format!("{count} imported into session {:?}, which shows {tokens} now", args.session))
}

fn compact(args: &OneSessionArgs, plan_args: &PlanArgs, dry_run: bool) -> Result<String> {
    let strategies = Strategies::parse(&plan_args.strategy)?;
    let mut history = history(args, &plan_args.tokenizer)?;
    // A share is of all that was said, so that the same command twice asks for the same.
    let own = match plan_args.budget.keep {
        Some(_) => logged_tokens(args)?,
        None => history.index().tokens(),
    };
    let asked = Asked::new(&plan_args.budget, own)?;
    let (report, record) = plan(&history, &asked, &strategies)?;
    if let Some(record) = record.filter(|_| !dry_run) {
        block_on(history.commit(&record)).map_err(|error| in_store(&args.store, error))?;
    }
    if args.json { to_json(&report) } else { Ok(report.to_text(&Picture::for_stdout())) }
}

type Planned = (Report, Option<epitome::std::history::CompactionRecord>);

fn plan(history: &History, asked: &Asked, strategies: &Strategies) -> Result<Planned> {
    let view = history.index();
    let mut cells = Vec::new();
    let outcome = match asked.is_due(view.tokens()) {
        false => None,
        true => Some(
            strategies
                .with(|strategy| history.plan(&asked.budget, asked.pass(), strategy, &mut cells))
                .map_err(|error| Failure::plan(&error, &asked.budget))?,
        ),
    };
    let decided = Decided::new(outcome.as_ref(), view, view.tokens(), asked);
    let sizes: Vec<_> = history.live().iter().map(|live| live.entry.count.tokens).collect();
    let counted = history.live().first().map(|live| live.entry.count.clone());
    let report = Report::new(Facts {
        index: view,
        decided,
        asked,
        strategies,
        sizes: &sizes,
        basis: counted.as_ref().map_or(Basis::Estimated, |count| count.basis),
        tokenizer: counted.map_or_else(String::new, |count| count.counter.to_string()),
    });
    let plan = match decided {
        Decided::Planned(plan) => Some(plan),
        _ => None,
    };
    let record = plan.map(|plan| history.record(plan, &strategies.names().join(",")));
    Ok((report, record))
}

/// Calls `visit` with every message of the log, in order.
fn for_each_logged(args: &OneSessionArgs, mut visit: impl FnMut(&Logged) -> Result<()>) -> Result<()> {
    let (store, id) = (open(&args.store, Missing::Refuse)?, id(args));
    let mut next = Some(Seq(0));
    while let Some(from) = next {
        let page =
            block_on(store.log(&id, from..Seq(u64::MAX), PAGE)).map_err(|error| match error.kind() {
                StoreErrorKind::NotFound => no_session(args),
                _ => in_store(&args.store, error),
            })?;
        next = page.next;
        page.messages.iter().try_for_each(&mut visit)?;
    }
    Ok(())
}

fn logged_tokens(args: &OneSessionArgs) -> Result<u64> {
    let mut tokens = 0;
    for_each_logged(args, |logged| {
        tokens += logged.entry.count.tokens.as_u64();
        Ok(())
    })?;
    Ok(tokens)
}

fn log(args: &OneSessionArgs) -> Result<String> {
    let mut text = String::new();
    let (mut messages, mut hidden) = (0, 0);
    for_each_logged(args, |logged| {
        messages += 1;
        hidden += u64::from(logged.hidden_by.is_some());
        text += &log_line(logged, args.json)?;
        Ok(())
    })?;
    if args.json {
        return Ok(text.trim_end().to_owned());
    }
    let (messages, hidden) = (counted(messages, "message"), grouped(hidden));
    Ok(format!("{text}{messages}, {hidden} of them hidden: no request shows them"))
}

fn log_line(logged: &Logged, json: bool) -> Result<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        seq: u64,
        hidden_by: Option<u64>,
        anchor: u64,
        turn: u32,
        tokens: u32,
        message: &'a RawValue,
    }

    let Logged { seq, entry, hidden_by, .. } = logged;
    if json {
        let message = &*raw(&entry.message)?;
        let message = &*RawValue::from_string(on_one_line(message.get()))
            .map_err(|error| Failure::input(error.to_string()))?;
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
    let store = open(&args.store, Missing::Refuse)?;
    let deleted = block_on(store.delete(&id(args))).map_err(|error| in_store(&args.store, error))?;
    match deleted {
        true if args.json => to_json(&serde_json::json!({ "session": args.session, "deleted": true })),
        true => Ok(format!("session {:?} and its log are deleted", args.session)),
        false => Err(no_session(args)),
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

/// JSON without the line breaks that may stand between its values; a text has none.
fn on_one_line(json: &str) -> String {
    json.replace(['\r', '\n'], "")
}

/// A message as Chat Completions writes it.
fn raw(message: &Message) -> Result<Box<RawValue>> {
    let text = openai_chat::write(message).map_err(|error| Failure::input(error.to_string()))?;
    RawValue::from_string(text.into_owned()).map_err(|error| Failure::input(error.to_string()))
}

fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string_pretty(value).map_err(|error| Failure::new(code::IO, error.to_string()))
}
