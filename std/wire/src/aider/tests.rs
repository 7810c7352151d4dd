//! Tests of histories.

use std::fs;
use std::path::Path;

use epitome_core::attribution::SourceKind;
use epitome_core::message::Role;
use epitome_message::{Message, Part};
use proptest::prelude::*;
use proptest::sample::select;

use super::runs::Speaker;
use crate::document::Pointer;
use crate::tests::support::{change, shown_in, transcript_of, written};
use crate::{
    Conversation, Format, ReadOptions, Transcript, TranscriptEntry, WireErrorKind, detect, read, write_back,
};

fn seed(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/wire_aider");
    fs::read_to_string(folder.join(name)).unwrap()
}

fn aider() -> ReadOptions {
    ReadOptions::default().with_from(Format::Aider)
}

fn transcript(text: &str) -> Transcript {
    read(text, &aider()).unwrap()
}

/// The source of each message, in a letter: a caller, the program, context.
fn sources(conversation: &Conversation) -> String {
    let of = |message: &Message| match message.attribution().source {
        SourceKind::Tool => 'p',
        SourceKind::Context => 'c',
        _ => '-',
    };
    conversation.messages().map(of).collect()
}

fn refused(transcript: &Transcript) -> String {
    let error = write_back(transcript, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), WireErrorKind::Unsupported);
    error.to_string()
}

#[test]
fn a_history_is_one_conversation() {
    let text = seed("history.md");
    for text in [text.clone(), text.replace('\n', "\r\n"), format!("\u{FEFF}{text}")] {
        let transcript = transcript_of(&text, Format::Aider);
        assert_eq!(transcript.conversations().len(), 1);
        let conversation = &transcript.conversations()[0];
        let expected = [
            "user: text /usr/bin/aider hello.py\nAider v0.86.2\nAdded hello.py to the chat.",
            "user: text Print a greeting\n\nin French, not in English",
            "assistant: text \"Bonjour\" is printed now.\n\n#### What changed\n\n```python\n# greets\nprint(\"Bonjour, le monde\")\n```",
            "user: text Applied edit to hello.py\nCommit 4f2a1b0 feat: greet in French",
            "user: text /run python hello.py",
            "user: text Bonjour, le monde",
            "user: text /ask why French?",
            "assistant: text Because you asked for it.",
        ];
        assert_eq!(shown_in(conversation), expected);
        assert_eq!(sources(conversation), "p--pcp--");
    }
}

#[test]
fn without_the_spaces_of_aider_each_mark_is_the_users() {
    let mut bare = transcript(&seed("without_spaces.md"));
    let expected = [
        "user: text Greet",
        "assistant: text Done.",
        "user: text Applied edit to a.py",
        "user: text /drop a.py\n<blank>",
    ];
    assert_eq!(shown_in(&bare.conversations()[0]), expected);
    let conversation = &mut bare.conversations_mut()[0];
    change(conversation, 0, vec![Part::Text("Hail  ".into())]);
    change(conversation, 3, vec![Part::Text("Now  \nthen".into())]);
    conversation.entries.remove(1);
    let out = "#### Hail\r\n> Applied edit to a.py\r\n#### Now\r\n#### then";
    assert_eq!(written(&bare), out);
    bare.conversations_mut()[0].entries.push(TranscriptEntry::new(Message::user("more")));
    assert!(refused(&bare).contains("a new message"));
}

#[test]
fn a_blank_line_ends_a_message_of_all_but_the_assistant() {
    let text = "#### one  \n\n#### two  \n#### lines  \n> out  \n \n> more  \nA.\n\nB.\n";
    let expected = [
        "user: text one",
        "user: text two\nlines",
        "user: text out",
        "user: text more",
        "assistant: text A.\n\nB.",
    ];
    assert_eq!(shown_in(&transcript(text).conversations()[0]), expected);
}

#[test]
fn commands_are_no_requests() {
    for (said, is_request) in [
        ("/add a.py", false),
        ("/run\tmake", false),
        ("!ls", false),
        ("/ask", false),
        ("/help  ", false),
        ("<blank>", false),
        ("/", false),
        ("/ok", true),
        ("/ask why", true),
        ("/arch a shop", true),
        ("/code\nmore", true),
        ("add a.py", true),
        ("Why <blank>?", true),
    ] {
        let lines = Speaker::User.lines(said, None);
        let found = transcript(&format!("{lines}\n"));
        let expected = if is_request { "-" } else { "c" };
        assert_eq!(sources(&found.conversations()[0]), expected, "{said:?}");
    }
}

#[test]
fn only_a_history_is_told() {
    for text in ["# A page\n\nWords.\n", "words\n# aider chat started at 2026\n", "> quoted\n", "", "\n\n"] {
        let error = detect(text).unwrap_err();
        let kind = if text.trim().is_empty() { WireErrorKind::Empty } else { WireErrorKind::NotJson };
        assert_eq!(error.kind(), kind, "{text:?}");
    }
    let error = read("# A page\n\nWords.\n", &aider()).unwrap_err();
    assert_eq!((error.kind(), error.line()), (WireErrorKind::Shape, Some(1)));
    assert!(error.to_string().contains("`# aider chat started at `"), "{error}");
    assert_eq!(read(" \n", &aider()).unwrap_err().kind(), WireErrorKind::Empty);
}

#[test]
fn a_history_has_no_places_elements_and_branches() {
    let text = seed("history.md");
    for options in [ReadOptions::default(), aider()] {
        for options in
            [options.clone().with_each(), options.clone().with_at(Pointer::parse("/messages").unwrap())]
        {
            let error = read(text.as_str(), &options).unwrap_err();
            assert_eq!(error.kind(), WireErrorKind::Shape);
            assert!(error.to_string().contains("--at and --each"), "{error}");
        }
        let error = read(text.as_str(), &options.with_leaf("x")).unwrap_err();
        assert_eq!(error.kind(), WireErrorKind::NotFound);
        assert!(error.to_string().contains("--leaf"), "{error}");
    }
}

#[test]
fn the_first_line_of_a_run_goes_with_its_last_message() {
    let mut short = transcript(&seed("history.md"));
    let entries = &mut short.conversations_mut()[0].entries;
    *entries = entries.iter().skip(7).cloned().collect::<Vec<_>>().into();
    let start =
        "\n# aider chat started at 2026-05-22 09:00:00\n\n# aider chat started at 2026-05-23 10:30:00\n\n";
    assert_eq!(written(&short), format!("{start}Because you asked for it.\n\n"));
    let empty = "# aider chat started at 2026-05-22 11:00:00\n\n# aider chat started at 2026-05-23";
    let mut older = transcript(&seed("history.md").replace("# aider chat started at 2026-05-23", empty));
    older.conversations_mut()[0].entries.truncate(2);
    let out = written(&older);
    assert!(
        out.ends_with("#### in French, not in English  \n\n") && out.matches("# aider").count() == 1,
        "{out}"
    );
}

#[test]
fn a_summary_stands_behind_the_first_line() {
    let mut short = transcript(&seed("history.md"));
    let entries = &mut short.conversations_mut()[0].entries;
    *entries = [TranscriptEntry::new(Message::user("So far:\n\n> a greeting"))]
        .into_iter()
        .chain(entries.iter().skip(6).cloned())
        .collect::<Vec<_>>()
        .into();
    let out = written(&short);
    let start = "\n# aider chat started at 2026-05-22 09:00:00\n\n#### So far:  \n####   \n#### > a greeting  \n\n# aider";
    assert!(out.starts_with(start), "{out}");
    let again = transcript_of(&out, Format::Aider);
    let expected = [
        "user: text So far:\n\n> a greeting",
        "user: text /ask why French?",
        "assistant: text Because you asked for it.",
    ];
    assert_eq!(shown_in(&again.conversations()[0]), expected);
}

#[test]
fn a_new_text_of_the_assistant_stands_apart_from_its_neighbours() {
    let mut changed = transcript(&seed("history.md"));
    let shown = shown_in(&changed.conversations()[0]);
    let answer = shown.iter().position(|message| message.starts_with("assistant: ")).unwrap();
    for at in [answer, answer + 2] {
        let new = TranscriptEntry::new(Message::assistant("So far."));
        changed.conversations_mut()[0].entries.insert(at, new);
    }
    let again = shown_in(&transcript(&written(&changed)).conversations()[0]);
    let summary = "assistant: text So far.";
    assert_eq!(again[answer..answer + 3], [summary, shown[answer].as_str(), summary]);
    assert_eq!(again.len(), shown.len() + 2);
}

#[test]
fn what_would_be_read_as_another_speakers_is_refused() {
    for said in ["> quoted", "a\n#### Heading", "#### asked  ", "b\n# aider chat started at 1"] {
        let mut changed = transcript(&seed("history.md"));
        change(&mut changed.conversations_mut()[0], 7, vec![Part::Text(said.into())]);
        assert!(refused(&changed).contains("a line begins with"), "{said:?}");
        let mut new = transcript(&seed("history.md"));
        new.conversations_mut()[0].entries.push(TranscriptEntry::new(Message::assistant(said)));
        assert!(refused(&new).contains("a line begins with"), "{said:?}");
        let mut asked = transcript(&seed("history.md"));
        change(&mut asked.conversations_mut()[0], 1, vec![Part::Text(said.into())]);
        let again = transcript(&written(&asked));
        assert_eq!(shown_in(&again.conversations()[0])[1], format!("user: text {said}"));
    }
    // A heading that was there may stay.
    let mut shorter = transcript(&seed("history.md"));
    let said = "It is.\n\n#### What changed";
    change(&mut shorter.conversations_mut()[0], 2, vec![Part::Text(said.into())]);
    let again = transcript(&written(&shorter));
    assert_eq!(shown_in(&again.conversations()[0])[2], format!("assistant: text {said}"));
    for message in
        [Message::new(Role::System, vec![Part::Text("Be brief.".into())]), Message::assistant(" \n")]
    {
        let mut new = transcript(&seed("history.md"));
        new.conversations_mut()[0].entries.push(TranscriptEntry::new(message));
        refused(&new);
    }
}

/// The speaker of each message and its lines with words. Adjacent messages of one speaker are joined.
fn said(messages: impl IntoIterator<Item = (Speaker, String)>) -> Vec<(Speaker, Vec<String>)> {
    let mut found: Vec<(Speaker, Vec<String>)> = Vec::new();
    for (speaker, text) in messages {
        let lines = text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned);
        match found.last_mut().filter(|(last, _)| *last == speaker) {
            Some((_, all)) => all.extend(lines),
            None => found.push((speaker, lines.collect())),
        }
    }
    found
}

fn messages(transcript: &Transcript) -> Vec<(Speaker, String)> {
    let of = |message: &Message| {
        let speaker = match (message.role(), message.attribution().source) {
            (Role::Assistant, _) => Speaker::Assistant,
            (_, SourceKind::Tool) => Speaker::Program,
            _ => Speaker::User,
        };
        let Part::Text(text) = &message.parts()[0] else { unreachable!() };
        (speaker, text.to_string())
    };
    transcript.conversations()[0].messages().map(of).collect()
}

/// A text that each speaker can have, with lines that look like marks.
fn text() -> impl Strategy<Value = String> {
    let line = select(vec!["go", "日本", "# heading", "####x", ">x", "a  b", "\"q\"", "", "  in"]);
    prop::collection::vec(line, 1..4).prop_map(|lines| format!("{}\nend", lines.join("\n")).trim().to_owned())
}

/// A piece of aider's output: a line that begins a run, or a text of a speaker.
fn piece() -> impl Strategy<Value = String> {
    let breaks = || select(vec!["\n", "\n\n", "\n \n"]);
    let start = Just("# aider chat started at 2026-01-01 00:00:00".to_owned());
    let heading = text().prop_map(|text| format!("{text}\n#### heading\n{text}"));
    let one = prop_oneof![
        1 => start,
        3 => text().prop_map(|text| Speaker::User.lines(&text, None)),
        3 => text().prop_map(|text| Speaker::Program.lines(&text, None)),
        3 => text(),
        1 => heading,
    ];
    (one, breaks()).prop_map(|(one, end)| format!("{one}{end}"))
}

/// A history in which the user's text comes first, with or without a line that begins the run.
fn history() -> impl Strategy<Value = String> {
    let first = select(vec!["", "\n", "# aider chat started at 2026-01-01 00:00:00\n\n"]);
    (first, prop::collection::vec(piece(), 0..9), any::<bool>(), any::<bool>()).prop_map(
        |(first, pieces, is_windows, is_open)| {
            let text = format!("{first}#### first  \n\n{}", pieces.concat());
            let text = if is_open { text.trim_end_matches(['\n']).to_owned() } else { text };
            if is_windows { text.replace('\n', "\r\n") } else { text }
        },
    )
}

#[derive(Debug, Clone)]
enum Edit {
    Keep,
    Drop,
    Change(String),
    Insert(Speaker, String),
}

fn edit() -> impl Strategy<Value = Edit> {
    let speaker = select(vec![Speaker::User, Speaker::Program, Speaker::Assistant]);
    prop_oneof![
        2 => Just(Edit::Keep),
        2 => Just(Edit::Drop),
        1 => text().prop_map(Edit::Change),
        1 => (speaker, text()).prop_map(|(speaker, text)| Edit::Insert(speaker, text)),
    ]
}

proptest! {
    #[test]
    fn an_edited_history_is_read_again_as_it_was_edited(
        text in history(),
        edits in prop::collection::vec(edit(), 12),
    ) {
        let mut edited = transcript(&text);
        prop_assert_eq!(written(&edited), text.as_str());
        let mut expected = Vec::new();
        let mut entries = Vec::new();
        let was = messages(&edited);
        let read = edited.conversations_mut()[0].entries.clone();
        for (at, (entry, (speaker, said))) in read.iter().zip(was).enumerate() {
            // A text of the user stays: without any, headings would be read as the user's.
            match edits.get(at).filter(|_| at > 0).unwrap_or(&Edit::Keep) {
                Edit::Drop => continue,
                Edit::Change(text) => {
                    let message = entry.message().clone().with_parts(vec![Part::Text(text.as_str().into())]);
                    entries.push(entry.clone().with_message(message));
                    expected.push((speaker, text.clone()));
                    continue;
                }
                Edit::Insert(new, text) => {
                    let message = match new {
                        Speaker::Assistant => Message::assistant(text.as_str()),
                        Speaker::Program => super::spec::message(&text.as_str().into(), *new, &new.lines(text, None))
                            .unwrap().without_wire(),
                        _ => Message::user(text.as_str()),
                    };
                    entries.push(TranscriptEntry::new(message));
                    expected.push((*new, text.clone()));
                }
                Edit::Keep => {}
            }
            entries.push(entry.clone());
            expected.push((speaker, said));
        }
        edited.conversations_mut()[0].entries = entries.into();
        let out = written(&edited);
        let again = transcript(&out);
        prop_assert_eq!(said(messages(&again)), said(expected), "{}", out);
        prop_assert_eq!(written(&again), out);
    }
}
