//! Goes on with a session: reads it from a file, adds what was said in one run, and writes it to another file.
//!
//! ```text
//! session_interop new OUT          a new session, with a turn that calls a tool
//! session_interop continue IN OUT  one more run; prints how many messages its request would have
//! ```
//!
//! The files are those of Microsoft Agent Framework too: `tests/interop/session.sh` hands one back and forth.

use core::error::Error;

use epitome_core::message::Role;
use epitome_std::message::{Message, Part, ToolCall};
use epitome_std::provider::{HistoryProvider, NamedAgent, Providers};
use epitome_std::session::{AgentResponse, AgentSession, SessionContext};

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
        _ => return Err("usage: session_interop new OUT | continue IN OUT".into()),
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
        context.set_response(AgentResponse::new(answer));
        providers.after_run(&agent, session, &mut context).await?;
        Ok(messages)
    })
}
