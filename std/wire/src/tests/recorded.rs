//! Recorded conversations of real agents. They are not part of the project: the tests run if there is a directory
//! `shared/data` beside the project or further up.

use std::path::{Path, PathBuf};

use epitome_core::message::MessageView;

use crate::document::{Document, DocumentConversation, Piece, Pointer, each, looks_like_jsonl, utf8};
use crate::openai_chat::{ChatView, read, tests::shown, write};

fn directory() -> Option<PathBuf> {
    let near = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    let found = near.ancestors().map(|above| above.join("shared/data/openai_chat"));
    let found = core::iter::once(near.join("openai_chat")).chain(found).find(|path| path.is_dir());
    if found.is_none() {
        eprintln!("skipped: there are no recorded conversations in {}", near.display());
    }
    found
}

/// Every message is read, borrowed and owned alike, and is written back as it was.
fn check(conversation: &DocumentConversation<'_>) -> usize {
    for (index, text) in conversation.iter().enumerate() {
        let view = ChatView::parse(text).map_err(|error| conversation.place(index, error)).unwrap();
        let owned = read(text).unwrap();
        assert_eq!(write(&owned).unwrap(), text);
        assert_eq!(shown(&view), shown(&owned));
        assert_eq!((view.role(), MessageView::name(&view)), (owned.role(), owned.name()));
        let again = write(&owned.clone().with_parts(owned.parts().to_vec())).unwrap().into_owned();
        assert_eq!(again, text, "the same parts again change nothing");
    }
    let mut out = Vec::new();
    conversation.splice((0..conversation.len()).map(Piece::Original), &mut out).unwrap();
    assert_eq!(out, conversation.whole().as_bytes());
    conversation.len()
}

fn each_at(text: &str, pointer: &str) -> (usize, usize) {
    let pointer = Pointer::parse(pointer).unwrap();
    let conversations =
        each(text).unwrap().map(|run| run.unwrap().at(&pointer).unwrap().conversation().unwrap());
    conversations.fold((0, 0), |(count, messages), found| (count + 1, messages + check(&found)))
}

#[test]
fn recorded_conversations_read_and_write() {
    let Some(directory) = directory() else { return };
    let load = |name: &str| std::fs::read(directory.join(name)).unwrap();
    let runs = load("tau-bench__gpt-4o-airline.json");
    assert_eq!(each_at(utf8(&runs).unwrap(), "/traj"), (80, 2274));
    let requests = load("pydantic-ai__recorded_requests.jsonl");
    assert!(looks_like_jsonl(utf8(&requests).unwrap()));
    assert_eq!(each_at(utf8(&requests).unwrap(), "/body/messages"), (86, 354));
    assert_eq!(each_at(utf8(&requests).unwrap(), "/body"), (86, 354));
    for (name, messages) in [
        ("swe-agent__marshmallow-1867_function_calling.traj", 24),
        ("swe-agent__ctf_web_i_got_id_demo.traj", 43),
    ] {
        let bytes = load(name);
        let document = Document::parse(utf8(&bytes).unwrap()).unwrap();
        let error = document.conversation().unwrap_err().to_string();
        assert!(
            error.ends_with(&format!("/history holds {messages} messages: try --at /history")),
            "{error}"
        );
        let there = document.at(&Pointer::parse("/history").unwrap()).unwrap();
        assert_eq!(check(&there.conversation().unwrap()), messages);
    }
}
