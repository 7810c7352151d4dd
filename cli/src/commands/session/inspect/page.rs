//! The HTML frame of the inspector, which its script fills with the answers of the server.

use maud::{DOCTYPE, PreEscaped, html};

use crate::page::{LIST_SCRIPT, Policy, STYLE};

const OWN_STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The content security policy of the page: a browser allows nothing else.
pub(super) const POLICY: Policy<'_> =
    Policy { styles: &[STYLE, OWN_STYLE], scripts: &[LIST_SCRIPT, SCRIPT], asks: true };

pub(super) fn html() -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "epitome session inspect" }
                style { (PreEscaped(STYLE)) }
                style { (PreEscaped(OWN_STYLE)) }
            }
            body {
                main {
                    p id="status" role="status" {}
                    noscript { p { "This page needs its script. Without it, " code { "epitome session log" } " and " code { "epitome session expand" } " print the same." } }
                    section id="all" hidden {
                        h1 { "Sessions" }
                        div.wide tabindex="0" role="region" aria-label="Sessions" {
                            table {
                                thead { tr { th.name { "session" } th { "messages" } th { "visible" } th { "tokens" } th { "revision" } } }
                                tbody id="sessions" {}
                            }
                        }
                    }
                    section id="one" hidden {
                        p { a href="#" { "All sessions" } }
                        h1 id="name" {}
                        dl.figures id="figures" {}
                        h2 { "The log" }
                        p.soft { "Each message as wide as it has tokens. A click opens it." }
                        div id="drawing" {}
                        ul.legend {
                            @for (style, word) in [("v-kept", "visible"), ("v-shortened", "shortened"), ("v-hidden", "hidden"), ("v-pruned", "deleted")] {
                                li { i class=(style) {} (word) }
                            }
                        }
                        h2 { "Revisions" }
                        p.soft id="no-revisions" hidden { "Nothing was compacted, rewound or deleted yet." }
                        div.wide id="revisions-table" tabindex="0" role="region" aria-label="Revisions" {
                            table {
                                thead { tr { th { "revision" } th.name { "made by" } th { "hides" } th { "shortens" } th { "summaries" } th { "tokens before" } th { "after" } th.name { "" } } }
                                tbody id="revisions" {}
                            }
                        }
                        h2 id="messages-title" { "Messages" }
                        form id="filters" role="search" {
                            label { "Words ( / )" input id="search" type="search" autocomplete="off"; }
                            label { "Role" select id="role" { option value="" { "all" } @for role in ["system", "developer", "user", "assistant", "tool"] { option { (role) } } } }
                            label {
                                "Show"
                                select id="view" {
                                    option value="log" { "all of the log" }
                                    option value="request" { "the next request" }
                                    option value="hidden" { "what is hidden" }
                                    option value="difference" { "the difference of two revisions" }
                                }
                            }
                            span id="between" hidden {
                                label { "From revision" input id="from" type="number" min="0"; }
                                label { "To revision" input id="to" type="number" min="0"; }
                            }
                            output id="count" for="search role view from to" {}
                        }
                        div id="list" {}
                    }
                }
                script { (PreEscaped(LIST_SCRIPT)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}
