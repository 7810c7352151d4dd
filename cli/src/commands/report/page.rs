//! The page: one HTML file with its style and its script, which loads nothing. A transcript is data: its texts are
//! escaped, and the page allows only its own script and style.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;

use super::chart::{self, VERDICTS};
use super::conversation::{Conversation, Said};
use super::kind::{ByKind, Kind};
use super::{LOST_MAX, LeftOut, Report};
use crate::amount::{counted, grouped};
use crate::commands::eval::Needs;
use crate::failure::{Failure, Result, code};
use crate::page::{LIST_SCRIPT, Policy, STYLE};
use crate::report::{Pays, share};
use crate::visible::line;

const SCRIPT: &str = include_str!("page.js");
const POLICY: Policy<'_> = Policy { styles: &[STYLE], scripts: &[LIST_SCRIPT, SCRIPT], asks: false };

/// Maximum number of rows in a table of tools and files, or of turns. `--json` has all.
const ROWS_MAX: usize = 200;

pub(super) fn html(report: &Report) -> Result<String> {
    let title = match report.conversations.as_slice() {
        [only] => line(&only.place),
        all => counted(all.len() as u64, "conversation"),
    };
    let messages = match report.conversations.as_slice() {
        [only] => Some(data(only)?),
        _ => None,
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY.to_header());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                title { (title) " - epitome report" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    @if let [only] = report.conversations.as_slice() {
                        h1 { (title) }
                        (conversation(only))
                        (messages_of(only))
                    } @else {
                        h1 { (title) }
                        (overview(report))
                    }
                    (left_out(&report.left_out))
                    p.soft { "Made by epitome " (env!("CARGO_PKG_VERSION")) ". The page asks for nothing from any network." }
                }
                @if let Some(messages) = messages {
                    script type="application/json" id="messages-data" { (PreEscaped(messages)) }
                    script { (PreEscaped(LIST_SCRIPT)) }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        }
    };
    Ok(page.into_string())
}

/// Data for the script, as JSON that cannot close an HTML element.
fn data(conversation: &Conversation) -> Result<String> {
    #[derive(Serialize)]
    struct Data<'a> {
        messages: &'a [Said],
        strips: Vec<&'a str>,
    }

    let strips = conversation.strips.iter().map(|strip| &*strip.verdicts).collect();
    let json = serde_json::to_string(&Data { messages: &conversation.said, strips });
    let json = json.map_err(|error| Failure::new(code::IO, error.to_string()))?;
    Ok(json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"))
}

fn overview(report: &Report) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Conversations" {
            table {
                caption { "Sizes are in tokens. The line: the size of the requests over time, with compactions." }
                thead { tr { th.name { "conversation" } th { "messages" } th { "turns" } th { "tokens" } th { "tool results" } th { "compactions" } th.name { "context" } } }
                tbody {
                    @for (number, one) in report.conversations.iter().enumerate() {
                        tr {
                            td.name { a href=(format!("#c{number}")) { (line(&one.place)) } }
                            td { (grouped(one.messages)) }
                            td { (grouped(one.turns.into())) }
                            td { (grouped(one.tokens)) }
                            td { (share(results(&one.by_kind), one.tokens)) }
                            td { (grouped(one.context.compactions.len() as u64)) }
                            td.name { (chart::spark(&one.context)) }
                        }
                    }
                }
            }
        }
        @for (number, one) in report.conversations.iter().enumerate() {
            section id=(format!("c{number}")) {
                h2 { (line(&one.place)) }
                (conversation(one))
            }
        }
    }
}

fn results(by_kind: &ByKind) -> u64 {
    by_kind.rows().filter(|(kind, _)| *kind == Kind::Results).map(|(_, tokens)| tokens).sum()
}

fn left_out(files: &[LeftOut]) -> Markup {
    html! {
        @if !files.is_empty() {
            h2 { "Left out" }
            ul { @for LeftOut { file, why } in files { li { (line(file)) ": " (line(why)) } } }
        }
    }
}

fn conversation(one: &Conversation) -> Markup {
    html! {
        dl.figures {
            @for (name, value) in [("messages", grouped(one.messages)), ("turns", grouped(one.turns.into())), ("tokens", grouped(one.tokens)), ("format", one.format.to_owned()), ("counted by", line(&one.tokenizer))] {
                div { dt { (name) } dd { (value) } }
            }
        }
        (context(one))
        (strips(one))
        (origins(one))
        @if let Some(needs) = &one.needs { (forgotten(one, needs)) }
    }
}

/// The heading of a part; in an overview, one level below that of a conversation.
fn heading(one: &Conversation, text: &str) -> Markup {
    html! { @if one.said.is_empty() { h3 { (text) } } @else { h2 { (text) } } }
}

fn legend(rows: impl Iterator<Item = (&'static str, &'static str)>) -> Markup {
    html! { ul.legend { @for (class, name) in rows { li { i class=(class) {} (name) } } } }
}

fn context(one: &Conversation) -> Markup {
    let context = &one.context;
    let kinds = one.by_kind.rows().filter(|(_, tokens)| *tokens > 0).map(|(kind, _)| kind);
    let summaries = context
        .requests
        .iter()
        .any(|request| request.tokens.rows().any(|(kind, tokens)| kind == Kind::Summaries && tokens > 0));
    let kinds = Kind::ALL.into_iter().filter({
        let kinds: Vec<_> = kinds.collect();
        move |kind| kinds.contains(kind) || summaries && *kind == Kind::Summaries
    });
    html! {
        (heading(one, "Context over time"))
        p {
            "The size of each request, replayed with the strategy " b { (line(&context.strategy)) } ": a request of more than "
            (grouped(context.trigger)) " tokens (the trigger; the window has " (grouped(context.window)) ") is compacted first. Before that, the largest has "
            (counted(context.largest(), "token")) ", " (share(context.largest(), context.window)) " of the window."
            @if context.over(context.trigger) > 0 {
                " " (counted(context.over(context.trigger), "request")) @if context.over(context.trigger) == 1 { " stays" } @else { " stay" } " over the trigger all the same, "
                (grouped(context.over(context.window))) " of them over the window. Above the trigger, the next compaction comes when the context has grown by an eighth."
            }
        }
        @if !one.compacted_by_tool.is_empty() { p { (compacted_by_tool(&one.compacted_by_tool)) } }
        div.wide tabindex="0" role="region" aria-label="Context over time" { (chart::context(context)) }
        (legend(kinds.map(|kind| (kind.class(), kind.name()))))
        @if !context.compactions.is_empty() { (compactions(one)) }
    }
}

fn compactions(one: &Conversation) -> Markup {
    let compactions = &one.context.compactions;
    let is_priced = compactions.iter().any(|compaction| compaction.pays.is_some());
    html! {
        div.wide tabindex="0" role="region" aria-label="Compactions" {
            table {
                caption { "Compactions, in tokens. Cache: the tokens of the unchanged beginning, which a prompt cache keeps. " @if is_priced { (PRICED) } }
                thead { tr { th { "before message" } th { "before" } th { "after" } th { "cache kept" } th { "cache lost" } @if is_priced { th { "costs" } th { "pays after" } } th.name { "change by kind" } } }
                tbody {
                    @for compaction in compactions {
                        @let (before, after) = (compaction.before.total(), compaction.after.total());
                        tr {
                            td { (message(compaction.messages_before, one)) }
                            td { (grouped(before)) }
                            td { (grouped(after)) }
                            td { (grouped(compaction.stable_prefix_tokens)) }
                            td { (grouped(before.saturating_sub(compaction.stable_prefix_tokens))) }
                            @if let Some(pays) = &compaction.pays { td { (grouped(pays.costs_input_tokens)) } td { (pays_after(pays)) } }
                            td.name { (taken(&compaction.before, &compaction.after)) }
                        }
                    }
                }
            }
        }
    }
}

/// Compactions by the tool that wrote the file, and their places.
fn compacted_by_tool(places: &[u64]) -> String {
    let (first, later): (Vec<_>, Vec<_>) = places.iter().copied().partition(|at| *at == 0);
    let mut text = format!(
        "The tool that wrote the file compacted the conversation {}",
        counted(places.len() as u64, "time")
    );
    if !first.is_empty() {
        text +=
            &format!(", {} before the first message that it has left", counted(first.len() as u64, "time"));
    }
    if !later.is_empty() {
        let mut later: Vec<_> = later.into_iter().map(grouped).collect();
        later.dedup();
        text += &format!(", before message {}", later.join(", "));
    }
    text + "."
}

/// Meanings of the columns of prices.
const PRICED: &str = "Costs: once, in tokens of input that no cache holds. Pays after: so many requests on a warm prompt cache.";

fn pays_after(pays: &Pays) -> String {
    pays.after_requests.map_or_else(|| "never".to_owned(), grouped)
}

/// The number of a message, as a link if the page has its messages.
fn message(number: u64, one: &Conversation) -> Markup {
    html! {
        @if number < one.said.len() as u64 { a href=(format!("#m{number}")) { (grouped(number)) } } @else { (grouped(number)) }
    }
}

/// Tokens that a compaction removed and added, by kind.
fn taken(before: &ByKind, after: &ByKind) -> String {
    let rows = before.rows().zip(after.rows());
    let taken =
        rows.filter(|((_, before), (_, after))| before != after).map(|((kind, before), (_, after))| {
            let sign = if after < before { '-' } else { '+' };
            format!("{sign}{} {}", grouped(before.abs_diff(after)), kind.name())
        });
    taken.collect::<Vec<_>>().join(", ")
}

fn strips(one: &Conversation) -> Markup {
    let is_priced = one.strips.iter().any(|strip| strip.pays.is_some());
    html! {
        (heading(one, "What each strategy keeps"))
        p { "The whole conversation compacted now. Each strip is as wide as the conversation was before, from its first token to its last; a click opens the message. " @if is_priced { (PRICED) } }
        div.wide tabindex="0" role="region" aria-label="What each strategy keeps" {
            table {
                thead { tr { th.name { "strategy" } th { "keep" } th.name { "verdicts" } th { "tokens after" } th { "cache kept" } @if is_priced { th { "pays after" } } } }
                tbody {
                    @for strip in &one.strips {
                        tr {
                            td.name { (line(&strip.strategy)) }
                            td { (strip.keep) }
                            td.strip { (chart::strip(&one.groups, &strip.verdicts, &described(&strip.verdicts))) }
                            td {
                                @if strip.infeasible { "the protected messages do not fit" } @else { (grouped(strip.tokens_after)) @if strip.goal_missed { " (more than asked for)" } }
                            }
                            td { (grouped(strip.stable_prefix_tokens)) }
                            @if is_priced { td { @if let Some(pays) = &strip.pays { (pays_after(pays)) } } }
                        }
                    }
                }
            }
        }
        (legend(VERDICTS.into_iter().map(|(_, class, name)| (class, name))))
    }
}

/// The number of groups for each verdict of a strip, as a text.
fn described(verdicts: &str) -> String {
    let counts = VERDICTS.iter().map(|(letter, _, name)| {
        format!(
            "{} {name}",
            counted(verdicts.chars().filter(|verdict| verdict == letter).count() as u64, "group")
        )
    });
    counts.collect::<Vec<_>>().join(", ")
}

fn origins(one: &Conversation) -> Markup {
    html! {
        (heading(one, "Where the tokens are"))
        div.wide tabindex="0" role="region" aria-label="Where the tokens are" { (chart::origins(&one.by_kind, &one.by_tool, one.tokens)) }
        div.wide tabindex="0" role="region" aria-label="Tokens by kind" {
            table {
                caption { "By kind" }
                thead { tr { th.name { "kind" } th { "tokens" } th { "share" } } }
                tbody {
                    @for (kind, tokens) in one.by_kind.rows().filter(|(_, tokens)| *tokens > 0) {
                        tr { td.name { (kind.name()) } td { (grouped(tokens)) } td { (share(tokens, one.tokens)) } }
                    }
                }
            }
        }
        @if !one.by_tool.is_empty() {
            details {
                summary { "By tool and file" }
                div.wide tabindex="0" role="region" aria-label="Tokens by tool and file" {
                    table {
                        thead { tr { th.name { "tool" } th.name { "file" } th { "calls" } th { "tokens" } th { "share" } } }
                        tbody {
                            @for row in one.by_tool.iter().take(ROWS_MAX) {
                                tr {
                                    td.name { (row.tool.as_deref().map_or_else(|| "(no call)".to_owned(), line)) }
                                    td.name { (row.file.as_deref().map(line).unwrap_or_default()) }
                                    td { (grouped(row.calls)) } td { (grouped(row.tokens)) } td { (share(row.tokens, one.tokens)) }
                                }
                            }
                        }
                    }
                    (more(one.by_tool.len()))
                }
            }
        }
        details {
            summary { "By turn" }
            div.wide tabindex="0" role="region" aria-label="Tokens by turn" {
                table {
                    thead { tr { th { "turn" } th { "from message" } th { "tokens" } th { "share" } } }
                    tbody {
                        @for turn in one.by_turn.iter().take(ROWS_MAX) {
                            tr { td { (grouped(turn.turn.into())) } td { (message(turn.first_message, one)) } td { (grouped(turn.tokens.total())) } td { (share(turn.tokens.total(), one.tokens)) } }
                        }
                    }
                }
                (more(one.by_turn.len()))
            }
        }
    }
}

fn more(rows: usize) -> Markup {
    html! {
        @if rows > ROWS_MAX { p.soft { (counted((rows - ROWS_MAX) as u64, "more row")) "; epitome report --json has all." } }
    }
}

fn forgotten(one: &Conversation, needs: &Needs) -> Markup {
    let percent =
        |figure: Option<f64>| figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.1}"));
    html! {
        (heading(one, "What the model needed next"))
        p {
            "The conversation is cut " (counted(needs.cuts, "time")) ", and what stands before the cut is compacted. Of the identifiers and the runs of five words "
            "that stand there and that the model writes next, the table has the percentage that is still shown. Rows in parentheses choose with less knowledge than any strategy "
            "(newest, random) or with more (the oracles know what comes)."
        }
        div.wide tabindex="0" role="region" aria-label="What the model needed next" {
            table {
                thead { tr { th { "keep" } th.name { "strategy" } th { "identifiers" } th { "copied text" } th { "tokens left" } } }
                tbody {
                    @for share in &needs.shares { @for row in &share.rows {
                        tr class=[row.baseline.then_some("soft")] {
                            td { (share.keep) } td.name { (line(&row.strategy)) }
                            @let is_measured = row.identifiers.or(row.copied_text).is_some();
                            td { (percent(row.identifiers)) } td { (percent(row.copied_text)) } td { (percent(is_measured.then_some(row.tokens_left))) }
                        }
                    } }
                }
            }
        }
        @for share in needs.shares.iter().filter(|share| share.left_out > 0) {
            p.soft { "Keep " (share.keep) ": " (counted(share.left_out, "cut")) " left out, at which the protected messages have more than that." }
        }
        @for share in &needs.shares { @for row in share.rows.iter().filter(|row| !row.lost.is_empty()) {
            details {
                summary { "Lost by " (line(&row.strategy)) " (keep " (share.keep) ")" @if row.lost.len() == LOST_MAX { ", the first " (LOST_MAX) } }
                ul {
                    @for lost in &row.lost {
                        li {
                            code { (line(&lost.identifier)) } ": stood in message " (message(lost.stood_in.into(), one))
                            " (" (lost.role.as_str()) "), needed in message " (message(lost.needed_at.into(), one)) ", cut before message " (message(lost.cut as u64, one))
                        }
                    }
                }
            }
        } }
    }
}

/// The element for the messages, which the script fills.
fn messages_of(one: &Conversation) -> Markup {
    html! {
        h2 id="messages-title" { "Messages" }
        noscript { p { "Messages are shown by a script. Without it, " code { "epitome show FILE" } " prints them." } }
        div id="messages" hidden {
            form id="filters" role="search" {
                label { "Search ( / )" input id="search" type="search" autocomplete="off"; }
                label { "Role" select id="role" { option value="" { "all" } @for role in ["system", "developer", "user", "assistant", "tool"] { option { (role) } } } }
                label {
                    "Strategy"
                    select id="strip" {
                        @for (number, strip) in one.strips.iter().enumerate() { option value=(number) { (line(&strip.strategy)) ", keep " (strip.keep) } }
                    }
                }
                label { "Verdict" select id="verdict" { option value="" { "all" } @for (letter, _, name) in VERDICTS { option value=(letter) { (name) } } } }
                output id="count" for="search role strip verdict" {}
            }
            div id="list" {}
        }
    }
}
