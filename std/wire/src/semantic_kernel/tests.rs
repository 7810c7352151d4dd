//! Histories of Semantic Kernel, read, changed and written back.

use epitome_message::{Part, ToolResult};

use crate::openai_chat::tests::shown;
use crate::tests::support::written;
use crate::{Format, ReadOptions, TranscriptEntry, detect, read};

const HISTORY: &str = "\u{FEFF}[\r\n {\"Role\": {\"Label\": \"user\"}, \"Items\": [{\"$type\": \"TextContent\", \"Text\": \"Weather?\"},
  {\"$type\": \"ImageContent\", \"Uri\": \"https://a/b.png\"}, {\"$type\": \"BinaryContent\", \"Data\": \"QUJD\"}]},
 {\"Role\": {\"Label\": \"assistant\"}, \"Items\": [{\"$type\": \"FunctionCallContent\", \"Id\": \"c1\", \"PluginName\": \"Sky\",
  \"FunctionName\": \"Now\", \"Arguments\": {\"city\": \"Oslo\"}}], \"ModelId\": \"m\",
  \"Metadata\": {\"Usage\": {\"CompletionTokens\": 23, \"PromptTokens\": 196, \"TotalTokens\": 219}}},
 {\"Role\": {\"Label\": \"tool\"}, \"Items\": [{\"$type\": \"TextContent\", \"Text\": \"rain\"},
  {\"$type\": \"FunctionResultContent\", \"CallId\": \"c1\", \"PluginName\": \"Sky\", \"FunctionName\": \"Now\", \"Result\": \"rain\"}]},
 {\"Role\": {\"Label\": \"tool\"}, \"Items\": [{\"$type\": \"TextContent\", \"Text\": \"sun\"}], \"Metadata\": {\"ChatCompletionsToolCall.Id\": \"c2\"}}\r\n]";

#[test]
fn calls_and_results_are_paired_and_written_back() {
    assert_eq!(detect(HISTORY).unwrap().format, Format::SemanticKernel);
    let mut transcript = read(HISTORY, &ReadOptions::default()).unwrap();
    assert_eq!(written(&transcript), HISTORY, "the byte order mark too");
    let conversation = &mut transcript.conversations_mut()[0];
    let lines: Vec<_> = conversation.messages().map(|message| shown(message).join(" | ")).collect();
    assert!(lines[0].starts_with("text Weather? | Image"), "{}", lines[0]);
    assert_eq!(
        lines[1..],
        ["call c1 Sky-Now {\"city\": \"Oslo\"}", "result c1 [text rain]", "result c2 [text sun]"]
    );
    assert_eq!((conversation.usage[0].at, conversation.usage[0].usage.input_total), (1, Some(196)));
    for (at, id) in [(2, "c1"), (3, "c2")] {
        let cleared = Part::ToolResult(ToolResult::new(id, vec![Part::Text("-".into())]));
        let changed = conversation.entries[at].message().clone().with_parts(vec![cleared]);
        conversation.entries[at] = conversation.entries[at].clone().with_message(changed);
    }
    conversation.entries.push(TranscriptEntry::new(epitome_message::Message::assistant("Rain.")));
    let shorter = written(&transcript);
    let new = r#"{"Role":{"Label":"assistant"},"Items":[{"$type":"TextContent","Text":"Rain."}]}"#;
    let expected = HISTORY.replace("\"rain\"", "\"-\"").replace("\"sun\"", "\"-\"");
    let end = expected.rfind("\r\n]").unwrap();
    let expected = format!("{},\n {new}{}", &expected[..end], &expected[end..]);
    assert_eq!(shorter, expected);
}
