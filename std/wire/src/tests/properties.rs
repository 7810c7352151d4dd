//! Reading and writing on generated messages and documents.

use epitome_core::message::{MessageView, Role};
use epitome_message::{Message, Part};
use proptest::prelude::*;
use proptest::sample::subsequence;
use serde_json::{Value, json};

use super::generate;
use crate::document::{Document, DocumentConversation, Piece, conversation};
use crate::openai_chat::{ChatView, read, tests::shown, write};

/// A text with a conversation in it, and the messages to keep.
fn document() -> impl Strategy<Value = (String, Vec<usize>)> {
    let messages = prop::collection::vec(generate::message_value(), 0..7);
    (messages, generate::value(), any::<bool>(), generate::spaces()).prop_flat_map(
        |(messages, around, bare, spaces)| {
            let kept: Vec<usize> = (0..messages.len()).collect();
            let value = match bare {
                true => Value::from(messages),
                false => json!({"a": around.clone(), "messages": messages, "z": [around, {"role": "user"}]}),
            };
            let text = generate::print(&value, &spaces);
            let all = kept.len();
            (Just(text), subsequence(kept, 0..=all))
        },
    )
}

fn spliced(conversation: &DocumentConversation<'_>, kept: &[usize]) -> String {
    let mut out = Vec::new();
    conversation.splice(kept.iter().map(|index| Piece::Original(*index)), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The naive twin of a splice: on the value tree.
fn filtered(text: &str, kept: &[usize]) -> Value {
    let mut value: Value = serde_json::from_str(text).unwrap();
    let list = match &mut value {
        Value::Object(object) => &mut object["messages"],
        list => list,
    };
    *list = kept.iter().map(|index| list[*index].clone()).collect();
    value
}

/// A role, a message of that role, and other parts that it could have.
fn message_and_parts() -> impl Strategy<Value = (Message, Vec<Part>)> {
    generate::role().prop_flat_map(|role| (generate::message(role), generate::parts(role)))
}

proptest! {
    #[test]
    fn keeping_everything_is_the_text_itself((text, _) in document()) {
        let found = conversation(&text).unwrap();
        let all: Vec<usize> = (0..found.len()).collect();
        prop_assert_eq!(spliced(&found, &all), text);
    }

    #[test]
    fn keeping_some_is_what_a_value_tree_keeps((text, kept) in document()) {
        let found = conversation(&text).unwrap();
        let value: Value = serde_json::from_str(&spliced(&found, &kept)).unwrap();
        prop_assert_eq!(value, filtered(&text, &kept));
    }

    #[test]
    fn lines_are_kept_whole(
        messages in prop::collection::vec(generate::message_value(), 2..6),
        breaks in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "\n\n", " \n"]), 6),
        end in prop::sample::select(vec!["", "\n"]),
        kept in subsequence(vec![0_usize, 1, 2, 3, 4, 5], 0..=6),
    ) {
        let lines: Vec<String> = messages.iter().map(Value::to_string).collect();
        let mut text = String::new();
        for (index, line) in lines.iter().enumerate() {
            text.push_str(if index == 0 { "" } else { breaks[index] });
            text.push_str(line);
        }
        text.push_str(end);
        let found = conversation(&text).unwrap();
        let all: Vec<usize> = (0..lines.len()).collect();
        prop_assert_eq!(spliced(&found, &all), text.as_str());
        let kept: Vec<usize> = kept.into_iter().filter(|index| *index < lines.len()).collect();
        let shorter = spliced(&found, &kept);
        let again: Vec<&str> = shorter.lines().filter(|line| !line.trim().is_empty()).map(str::trim_end).collect();
        prop_assert_eq!(again, kept.iter().map(|index| lines[*index].as_str()).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_written_is_read_again((message, _) in message_and_parts()) {
        let text = write(&message).unwrap().into_owned();
        let again = read(&text).unwrap();
        prop_assert_eq!(again.role(), message.role());
        prop_assert_eq!(again.parts(), message.parts());
        prop_assert_eq!(again.name(), message.name());
        prop_assert_eq!(write(&again).unwrap(), text.as_str());
        let view = ChatView::parse(&text).unwrap();
        prop_assert_eq!(shown(&view), shown(&again));
        prop_assert_eq!((view.role(), MessageView::name(&view)), (again.role(), again.name()));
    }

    #[test]
    fn changed_messages_say_the_new_and_keep_the_unknown(
        (message, parts) in message_and_parts(),
        unknown in generate::value(),
        refusal in any::<bool>(),
    ) {
        let written = write(&message).unwrap().into_owned();
        let mut text = format!("{{\"x\": {unknown},{}", written.strip_prefix('{').unwrap());
        if refusal && message.role() == Role::Assistant {
            text.insert_str(1, "\"refusal\":\"no\", ");
        }
        let changed = read(&text).unwrap().with_parts(parts.clone());
        let text = write(&changed).unwrap().into_owned();
        let again = read(&text).unwrap();
        prop_assert_eq!(again.parts(), parts.as_slice());
        prop_assert_eq!(again.name(), message.name());
        let value: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&value["x"], &unknown);
    }

    #[test]
    fn a_cut_off_text_is_an_error_and_not_a_crash((message, _) in message_and_parts(), (text, _) in document()) {
        let written = write(&message).unwrap();
        for cut in (0..written.len()).filter(|cut| written.is_char_boundary(*cut)) {
            prop_assert!(ChatView::parse(&written[..cut]).is_err());
        }
        for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            prop_assert!(Document::parse(&text[..cut]).is_err() || text[cut..].trim().is_empty());
        }
    }

    #[test]
    fn any_text_is_answered(text in "[\\[\\]{}\",:\\\\a-eu0-9 \n]{0,40}", key in generate::text()) {
        let _ = ChatView::parse(&text);
        let _ = conversation(&text);
        let _ = crate::document::Pointer::parse(&key);
    }
}
