//! Goes on with a session: reads it from a file, adds what was said in one run, and writes it to another file.
//!
//! ```text
//! session_interop new OUT          a new session, with a turn that calls a tool
//! session_interop compacted OUT    one of which a compaction left a summary and the newest turn; prints what would be sent
//! session_interop continue IN OUT  one more run; prints how many messages its request would have
//! ```
//!
//! The files are those of Microsoft Agent Framework too: `tests/interop/session.sh` hands one back and forth.

use core::error::Error;

use epitome_core::message::Role;
use epitome_std::compaction::{CompactionOptions, Held, MessagesCompactor};
use epitome_std::message::{Message, Part, ToolCall};
use epitome_std::provider::{HistoryProvider, NamedAgent, Providers};
use epitome_std::run::{self, RunSettings};
use epitome_std::session::{AgentResponse, AgentSession, SessionContext, State};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["new", out] => {
            let mut session = AgentSession::with_id("from-rust");
            let call = Part::ToolCall(ToolCall::new("c1", "read", r#"{"path":"notes.txt"}"#));
            let answer = vec![
                Message::new(Role::Assistant, vec![call]),
                Message::tool("c1", "buy milk"),
                Message::assistant("It says: buy milk."),
            ];
            run(&mut session, "What is in notes.txt?", answer)?;
            std::fs::write(out, session.to_json()?)?;
        }
        ["continue", input, out] => {
            let mut session = AgentSession::from_json(&std::fs::read_to_string(input)?)?;
            let messages = run(&mut session, "And now?", vec![Message::assistant("Done.")])?;
            println!("{messages}");
            std::fs::write(out, session.to_json()?)?;
        }
        ["compacted", out] => {
            let mut session = AgentSession::with_id("compacted-in-rust");
            for question in 0..3 {
                let call = Part::ToolCall(ToolCall::new(format!("c{question}"), "read", "{}"));
                let answer = vec![
                    Message::new(Role::Assistant, vec![call]),
                    Message::tool(format!("c{question}"), "what stands in the file"),
                    Message::assistant(format!("Answer {question}")),
                ];
                run(&mut session, &format!("Question {question}"), answer)?;
            }
            for sent in compact(&mut session)? {
                println!("{sent}");
            }
            std::fs::write(out, session.to_json()?)?;
        }
        _ => return Err("usage: session_interop new OUT | compacted OUT | continue IN OUT".into()),
    }
    Ok(())
}

/// One run; gives how many messages its request has.
fn run(session: &mut AgentSession, says: &str, answer: Vec<Message>) -> Result<usize, Box<dyn Error>> {
    let (agent, mut providers) = (NamedAgent::new("interop"), Providers::default());
    providers.push(HistoryProvider::in_memory())?;
    let token = format!("run-after-{}", session.to_json()?.len());
    let mut context = SessionContext::new(session, token, vec![Message::user(says)]);
    futures::executor::block_on(async {
        providers.before_run(&agent, session, &mut context).await?;
        let messages = context.prompt_messages().count();
        context = context.with_response(AgentResponse::new(answer));
        providers.after_run(&agent, session, &mut context).await?;
        Ok(messages)
    })
}

/// A summary of all but the last turn; gives what is then sent.
fn compact(session: &mut AgentSession) -> Result<Vec<String>, Box<dyn Error>> {
    let last_turn =
        MessagesCompactor::new("last turn", |messages: Vec<Held>, _: CompactionOptions| async move {
            let last = messages.len().saturating_sub(4);
            let summary = Held::from(Message::assistant("[Conversation Summary]\nTwo were answered."));
            Ok(core::iter::once(summary).chain(messages.into_iter().skip(last)).collect())
        });
    let mut providers = Providers::default();
    providers.push(HistoryProvider::in_memory())?;
    let settings = RunSettings::new("interop").with_providers(providers);
    futures::executor::block_on(async {
        run::compact(&settings, session, &last_turn, CompactionOptions::default()).await?;
        let history = HistoryProvider::in_memory().open(session, &mut State::new()).await?;
        let sent =
            history.projection().map(|message| format!("{}: {}", message.role().as_str(), message.text()));
        Ok(sent.map(|sent| sent.replace('\n', " ")).collect())
    })
}
