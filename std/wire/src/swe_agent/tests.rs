//! Trajectories, read, changed and written back.

use epitome_message::{Part, ToolResult};

use crate::openai_chat::tests::shown;
use crate::{Format, ReadOptions, detect, read, write_back};

const TRAJECTORY: &str = r#"{"environment": "main", "trajectory": [{"action": "ls", "query": [{"role": "user"}]}], "history": [
  {"role": "system", "content": "Fix it.", "agent": "main", "message_type": "system_prompt"},
  {"role": "assistant", "content": "Look.", "thought": "Look.", "action": "ls", "agent": "main",
   "tool_calls": [{"function": {"arguments": "{}", "name": "ls"}, "id": "c1", "type": "function"}]},
  {"role": "tool", "content": "a.txt", "agent": "main", "tool_call_ids": ["c1"]}],
  "info": {"model_stats": {"instance_cost": 0.10}}}"#;

#[test]
fn results_answer_the_call_in_their_list() {
    assert_eq!(detect(TRAJECTORY).unwrap().format, Format::SweAgent);
    let mut transcript = read(TRAJECTORY, &ReadOptions::default()).unwrap();
    let conversation = &mut transcript.conversations_mut()[0];
    assert_eq!((conversation.path.as_str(), conversation.entries.len()), ("/history", 3));
    assert_eq!(shown(conversation.entries[2].message()), ["result c1 [text a.txt]"]);
    let cleared = Part::ToolResult(ToolResult::new("c1", vec![Part::Text("[cleared]".into())]));
    let changed = conversation.entries[2].message().clone().with_parts(vec![cleared]);
    conversation.entries[2] = conversation.entries[2].clone().with_message(changed);
    let mut out = Vec::new();
    write_back(&transcript, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), TRAJECTORY.replace("\"a.txt\"", "\"[cleared]\""));
}
