//! Session files that real agents have written, if they are available, and the content of each.

use std::fs;

use epitome_core::message::CallKind;
use epitome_core::{OpenCallTree, Profile, Validator};
use epitome_message::Part;

use super::formats::data;
use crate::document::Pointer;
use crate::{Conversation, Format, ReadOptions, Relation, WireErrorKind, detect, read, write_back};

/// Format, conversations, messages and calls of the active one, violations of its profile, the tool's compactions.
type Row = (Format, usize, usize, usize, usize, usize);

fn row(text: &str) -> (Row, usize) {
    let format = detect(text).unwrap().format;
    let transcript = read(text, &ReadOptions::default()).unwrap();
    let mut out = Vec::new();
    write_back(&transcript, &mut out).unwrap();
    assert!(out == text.as_bytes(), "{format}");
    let active = transcript.active().unwrap();
    let side = |one: &&Conversation| matches!(one.relation, Relation::SideChain(_));
    let aside = transcript.conversations().iter().filter(side).map(|one| one.entries.len()).sum();
    let row = (
        format,
        transcript.conversations().len(),
        active.entries.len(),
        calls(active),
        violations(active),
        active.compactions.len(),
    );
    (row, aside)
}

fn calls(conversation: &Conversation) -> usize {
    let parts = conversation.messages().flat_map(|message| message.parts());
    parts.filter(|part| matches!(part, Part::ToolCall(call) if call.kind == CallKind::Function)).count()
}

fn violations(conversation: &Conversation) -> usize {
    let profile = match conversation.format {
        Format::ClaudeCode => Profile::Anthropic,
        Format::Codex => Profile::OpenaiResponses,
        Format::GeminiCli => Profile::Gemini,
        _ => Profile::OpenaiChat,
    };
    let mut validator = Validator::<OpenCallTree>::new(profile);
    let mut found = Vec::new();
    for message in conversation.messages() {
        validator.push(message, &mut |violation| found.push(violation)).unwrap();
    }
    validator.finish(&mut |violation| found.push(violation));
    found.iter().for_each(|violation| println!("    {violation:?}"));
    found.len()
}

#[test]
fn real_session_files_hold_what_is_known_of_them() {
    for path in data() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some((_, expected, aside)) = KNOWN.iter().find(|(known, ..)| name == *known) else { continue };
        let found = row(&fs::read_to_string(&path).unwrap());
        println!("{name}: {found:?}");
        assert_eq!(found, (*expected, *aside), "{name}");
    }
}

#[test]
fn other_files_are_refused_with_a_place_to_look() {
    for path in data() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some((_, words)) = REFUSED.iter().find(|(known, _)| name == *known) else { continue };
        let error = detect(&fs::read_to_string(&path).unwrap()).unwrap_err().to_string();
        println!("{name}: {error}");
        assert!(error.contains(words), "{name}: {error}");
    }
}

/// A refused text can be read in the way that its refusal advises.
#[test]
fn what_a_refusal_says_to_try_works() {
    let mut tried = 0;
    for path in data() {
        let text = fs::read_to_string(&path).unwrap();
        let Err(error) = detect(&text) else { continue };
        let said = error.to_string();
        let Some((_, advice)) = said.split_once("try --") else { continue };
        let at = advice.split_once("at ").map(|(_, at)| Pointer::parse(at.trim()).unwrap());
        let options = ReadOptions { each: advice.starts_with("each"), at, ..ReadOptions::default() };
        // Requests to several providers in one file: a line that fits no provider, or two of them, is refused.
        if path.ends_with("pydantic-ai__recorded_requests.jsonl") {
            let alone = ReadOptions { each: false, ..options };
            let refused = text.lines().filter_map(|line| read(line, &alone).err());
            let is_known = |error: &crate::WireError| error.kind() == WireErrorKind::Ambiguous;
            assert!(refused.collect::<Vec<_>>().iter().all(is_known), "{path:?}");
        } else {
            read(text, &options).unwrap();
        }
        tried += 1;
    }
    println!("{tried} tried");
}

#[test]
fn what_is_no_conversation_is_told_by_what_it_looks_like() {
    let cases = [
        (r#"[{"role":"user","text":"Hi"}]"#, "`text` in the place of `content`"),
        (r#"[{"role":"user","content":[{"words":"Hi"}]}]"#, "a block of content without a `type`"),
        (r#"[{"role":"user"},{"role":"assistant"}]"#, "no known format fits"),
        (
            r#"{"topics":[],"meeting":[{"speaker":"A","content":"Hi"},{"speaker":"B","content":"Ho"}]}"#,
            "/meeting looks like a dialogue of 2 without roles",
        ),
        (
            r#"[{"name":"n","messages":[{"message":"Hi"}]}]"#,
            "/0/messages looks like a dialogue of 1 without roles",
        ),
        (r#"{"runs":[{"traj":[{"role":"user","content":"Hi"}]}]}"#, "try --at /runs/0/traj"),
    ];
    for (text, words) in cases {
        let error = detect(text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

/// Files that are no conversation, and the text of their refusal.
const REFUSED: &[(&str, &str)] = &[
    ("tau-bench__gpt-4o-airline.json", "try --each --at /traj"),
    ("toolbench__G3_13_function_call_tree.json", "try --at /answer_generation/train_messages/0"),
    ("longmemeval_s__3_instances.json", "try --each --at /haystack_sessions/0"),
    ("qmsum__Bmr006.json", "looks like a dialogue of"),
    ("qmsum__Bro027.json", "looks like a dialogue of"),
    ("kdconv__music_test_60_longest_zh.json", "/0/messages looks like a dialogue of"),
    ("memorybank__memory_bank_cn.json", "looks like a dialogue of"),
    ("memorybank__memory_bank_en.json", "looks like a dialogue of"),
    ("pydantic-ai__recorded_requests.jsonl", "try --each --at /body"),
];

/// The content of the files, and the number of messages in side chains.
const KNOWN: &[(&str, Row, usize)] = &[
    ("adk-python__flow_complex_spark.session.json", (Format::Adk, 1, 9, 2, 0, 0), 0),
    ("agent-sessions__codex_small_scrubbed.jsonl", (Format::Codex, 7, 17, 1, 0, 6), 0),
    ("agentcmd__claude_full-session-five.jsonl", (Format::ClaudeCode, 1, 14, 5, 0, 0), 0),
    ("agentcmd__claude_full-session-four.jsonl", (Format::ClaudeCode, 1, 82, 27, 0, 0), 0),
    ("agentcmd__claude_full-session-two.jsonl", (Format::ClaudeCode, 1, 35, 10, 0, 0), 0),
    ("agentcmd__codex_2025-09-24T19-22-20.jsonl", (Format::Codex, 1, 395, 123, 0, 0), 0),
    ("agentcmd__codex_2025-09-24T20-12-23.jsonl", (Format::Codex, 1, 54, 16, 0, 0), 0),
    ("agentcmd__codex_2025-09-25T08-02-05.jsonl", (Format::Codex, 1, 177, 57, 0, 0), 0),
    ("agentcmd__codex_2025-09-25T09-49-46.jsonl", (Format::Codex, 1, 256, 84, 0, 0), 0),
    ("agentcmd__codex_2025-09-25T15-12-14.jsonl", (Format::Codex, 1, 104, 34, 0, 0), 0),
    ("cctrace__claude_code_main.jsonl", (Format::ClaudeCode, 1, 496, 152, 1, 0), 0),
    ("claude-code-viewer__5c0375b4_ja.jsonl", (Format::ClaudeCode, 3, 31, 13, 0, 0), 22),
    ("claude-code-viewer__fe5e1c67.jsonl", (Format::ClaudeCode, 6, 32, 11, 0, 0), 405),
    ("deer-flow__5aa47db1.json", (Format::LangChain, 1, 39, 17, 0, 0), 0),
    ("deer-flow__7cfa5f8f.json", (Format::LangChain, 1, 60, 27, 0, 0), 0),
    ("deer-flow__7f9dc56c.json", (Format::LangChain, 1, 49, 23, 0, 0), 0),
    ("deer-flow__b83fbb2a.json", (Format::LangChain, 1, 27, 17, 2, 0), 0),
    ("deer-flow__c02bb4d5.json", (Format::LangChain, 1, 32, 13, 0, 0), 0),
    ("deer-flow__d3e5adaf.json", (Format::LangChain, 1, 53, 25, 0, 0), 0),
    ("entireio-cli__claude_5e5207b424_compacted.jsonl", (Format::ClaudeCode, 3, 198, 54, 0, 2), 0),
    ("entireio-cli__gemini_cli_session_ab2b9748b1.json", (Format::GeminiCli, 1, 21, 9, 0, 0), 0),
    ("openhands__multi_swe_bench_output.jsonl", (Format::OpenHands, 3, 47, 22, 0, 0), 0),
    ("openhands__trajs_basic_gui_mode.json", (Format::OpenHands, 1, 10, 4, 0, 0), 0),
    ("pi-mono__large-session.jsonl", (Format::Pi, 1, 900, 391, 18, 0), 0),
    ("semantic-kernel__auto-function-calling-plan.json", (Format::SemanticKernel, 1, 5, 2, 0, 0), 0),
    ("semantic-kernel__serializedChatHistoryV1_15_1.json", (Format::SemanticKernel, 1, 4, 1, 0, 0), 0),
    ("semantic-kernel__stepwise-plan.json", (Format::SemanticKernel, 1, 7, 2, 0, 0), 0),
    ("swe-agent__ctf_web_i_got_id_demo.traj", (Format::SweAgent, 1, 43, 0, 0, 0), 0),
    ("swe-agent__marshmallow-1867_function_calling.traj", (Format::SweAgent, 1, 24, 11, 0, 0), 0),
];
