//! Slots against a naive twin that changes a tree of values.

use std::sync::Arc;

use epitome_core::message::Role;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json as value};

use super::*;
use crate::json;

/// A record of blocks: texts, and results in separate messages. The content of a text occurs in its block twice.
fn pieces<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    let content = json::field(raw, "content")?.unwrap_or("[]");
    let mut pieces = RecordMessages::new(Role::User);
    blocks(content, |block| {
        let [text, again, result] = json::fields(block, &["text", "again", "result"])?;
        let said = |text: Option<&str>| share(whole, &json::decode(text.unwrap_or("\"\"")));
        let noted = match result {
            Some(result) => {
                let parts = vec![
                    RecordPart::new(Part::Text(said(Some(result)))).with_slot(Some(result), SlotForm::Text),
                ];
                RecordPart::result(ToolResult::new("c", Vec::new()), parts)
            }
            None => {
                let noted = RecordPart::new(Part::Text(said(text))).with_slot(text, SlotForm::Text);
                noted.with_slot(again, SlotForm::Around("[", "]"))
            }
        };
        pieces.extend(block, [noted.with_element(content, block)]);
        Ok(())
    })?;
    Ok(pieces.into_list())
}

fn read(text: &str) -> Vec<Message> {
    let whole: Arc<str> = Arc::from(text);
    messages(&whole, &whole, Format::Goose, pieces).unwrap()
}

/// A block, and its change: none, another text, or its removal.
fn block() -> impl Strategy<Value = (bool, String, Option<Option<String>>)> {
    (any::<bool>(), "[a-c\"\\\\é日 ]{1,6}", proptest::option::of(proptest::option::of("[x-z\n😀]{1,4}")))
}

proptest! {
    #[test]
    fn a_record_is_changed_as_a_tree_of_values_is(blocks in vec(block(), 0..9), pretty in any::<bool>()) {
        let of = |(is_result, said, _): &(bool, String, Option<Option<String>>)| match is_result {
            true => value!({"n": 1.50, "result": said}),
            false => value!({"text": said, "again": [said]}),
        };
        let record = value!({"before": [1, [2]], "content": blocks.iter().map(of).collect::<Vec<_>>(), "z": {}});
        let text = if pretty { serde_json::to_string_pretty(&record) } else { serde_json::to_string(&record) }.unwrap();
        let was = read(&text);
        // The parts of the messages, one for each block, in the order of the blocks.
        let mut fates = blocks.iter().map(|(.., fate)| fate.clone());
        let mut now = Vec::new();
        for message in &was {
            let mut parts = Vec::new();
            for part in message.parts() {
                match (fates.next().unwrap(), part) {
                    (None, part) => parts.push(part.clone()),
                    (Some(None), _) => {}
                    (Some(Some(new)), Part::ToolResult(_)) => {
                        parts.push(Part::ToolResult(ToolResult::new("c", vec![Part::Text(new.into())])));
                    }
                    (Some(Some(new)), _) => parts.push(Part::Text(new.into())),
                }
            }
            if !parts.is_empty() {
                now.push(message.clone().with_parts(parts));
            }
        }
        let written = write(Some(&text), &now.iter().collect::<Vec<_>>(), pieces).unwrap();
        let expected: Vec<Value> = blocks
            .iter()
            .filter_map(|(is_result, said, fate)| {
                let said = fate.clone().unwrap_or_else(|| Some(said.clone()))?;
                Some(of(&(*is_result, said, None)))
            })
            .collect();
        match written {
            None => prop_assert!(expected.is_empty()),
            Some(written) => {
                let mut tree = record;
                tree["content"] = Value::Array(expected);
                prop_assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), tree, "{}", written);
                // A second read finds the written content, and a write without a change keeps the text.
                let again = read(&written);
                let parts = |all: &[Message]| all.iter().flat_map(|one| one.parts().to_vec()).collect::<Vec<_>>();
                prop_assert_eq!(parts(&again), parts(&now));
                prop_assert_eq!(write(Some(&written), &again.iter().collect::<Vec<_>>(), pieces).unwrap(), Some(written));
            }
        }
    }
}

#[test]
fn a_change_without_a_slot_is_refused() {
    let text = r#"{"content":[{"text":"a"},{"result":"b"}]}"#;
    let was = read(text);
    let image = epitome_message::Media::new(
        epitome_core::message::MediaKind::Image,
        "image/png",
        epitome_message::MediaSource::Base64("AA==".into()),
    );
    let wrong: [Vec<Part>; 3] = [
        vec![Part::Media(image.clone())],
        vec![Part::Text("a".into()), Part::Text("new".into())],
        vec![Part::ToolResult(ToolResult::new("c", Vec::new()))],
    ];
    for parts in wrong {
        let changed = was[0].clone().with_parts(parts);
        let refused = write(Some(text), &[&changed, &was[1]], pieces).unwrap_err();
        assert_eq!(refused.kind(), crate::WireErrorKind::Unsupported);
    }
    let result =
        was[1].clone().with_parts(vec![Part::ToolResult(ToolResult::new("c", vec![Part::Media(image)]))]);
    assert!(write(Some(text), &[&was[0], &result], pieces).is_err());
    // A message of another record has no place in this one.
    let new = Message::user("new");
    assert!(write(Some(text), &[&was[0], &new, &was[1]], pieces).is_err());
}
