//! Tools that the provider runs, in long talks with a small model.

use std::sync::{Arc, Mutex};

use epitome::agent::Agent;
use epitome::compaction::{AutoCompaction, RunPoints};
use epitome::compactors::{Engine, StrategySpec};
use epitome::core::message::{CallKind, Role};
use epitome::core::{ClassEstimator, OpenCallTree, Profile, Usage, Validator, count_message};
use epitome::history::MemoryStore;
use epitome::message::{Message, Part, ToolCall, ToolResult};
use epitome::models::Model;
use epitome::run::{ModelResponse, RunOptions};
use epitome::wire::ContextOverflow;
use futures::executor::block_on;

use crate::sessions::runs::settings;
use crate::sessions::strict::{WINDOW, compactions};
use crate::sessions::support::Scripted;

/// The model searches in each of two hundred runs: a call, its result and the answer are in one message. No request
/// overflows, each request is legal, results are cleared before groups are dropped, and every call has its result.
#[test]
fn two_hundred_runs_with_searches_of_the_provider_fit_and_stay_legal() {
    for (profile, streams) in [(Profile::Anthropic, false), (Profile::OpenaiResponses, true)] {
        let (refused, cleared) = (Arc::new(Mutex::new(0_u32)), Arc::new(Mutex::new(0_u32)));
        let (refusals, clearings) = (Arc::clone(&refused), Arc::clone(&cleared));
        let client = Scripted::new(move |asked, messages| {
            let mut validator = Validator::<OpenCallTree>::new(profile);
            for message in messages {
                validator.push(message, &mut |violation| panic!("{profile:?}: {violation:?}")).unwrap();
            }
            validator.finish(&mut |violation| panic!("{profile:?}: {violation:?}"));
            let counter = ClassEstimator::new();
            let sent: u64 = messages.iter().map(|message| count_message(message, &counter).as_u64()).sum();
            if sent > WINDOW {
                *refusals.lock().unwrap() += 1;
                return Err(ContextOverflow::new(Some(WINDOW), Some(sent)).into());
            }
            let (mut calls, mut results) = (0, 0);
            for part in messages.iter().flat_map(|message| message.parts()) {
                match part {
                    Part::ToolCall(_) => calls += 1,
                    Part::ToolResult(result) => {
                        results += 1;
                        let is_cleared =
                            |part: &Part| matches!(part, Part::Text(text) if text == "[cleared]");
                        *clearings.lock().unwrap() += u32::from(result.parts.iter().any(is_cleared));
                    }
                    _ => {}
                }
            }
            assert_eq!(calls, results, "each call has its result");
            let mut call = ToolCall::new(format!("h{asked}"), "web_search", r#"{"query":"tide"}"#);
            call.kind = CallKind::Hosted;
            let found = ToolResult::new(
                format!("h{asked}"),
                vec![Part::Text("a page of the tide; ".repeat(40).into())],
            );
            let said =
                vec![Part::ToolCall(call), Part::ToolResult(found), Part::Text("It comes at nine.".into())];
            let answer = Message::new(Role::Assistant, said);
            Ok(ModelResponse::new(vec![answer]).with_usage(Usage::new(sent, 80)))
        });
        let engine = Engine::new("tool-results:keep=2 | truncate".parse::<StrategySpec>().unwrap());
        let auto = AutoCompaction::new(engine).with_points(RunPoints::default().and_before_call());
        let store = Arc::new(MemoryStore::new());
        let settings = settings(&store).with_model_row(Model::new("small", WINDOW)).with_profile(profile);
        let agent = Agent::with_settings(settings.with_compaction(auto), client);
        let (mut session, mut made) = (agent.create_session(Some("s"), None), 0);
        for run in 0..200 {
            let (question, options) = (format!("{run}: when is the tide?"), RunOptions::default());
            let outcome = match streams {
                true => block_on(agent.run_stream(&mut session, question, &options).finish()),
                false => block_on(agent.run(&mut session, question, &options)),
            };
            made += compactions(&outcome.unwrap().events);
        }
        assert_eq!(*refused.lock().unwrap(), 0, "{profile:?}");
        assert!(made >= 10 && *cleared.lock().unwrap() > 100, "{profile:?}: {made}, {cleared:?}");
    }
}
