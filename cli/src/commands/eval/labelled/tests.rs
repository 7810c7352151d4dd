//! Each shape is read like its neutral twin. An unreadable file is refused with the place of the error and a remedy.

use std::fs;
use std::path::PathBuf;

use epitome::core::message::Role;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::commands::eval::words::text_of;

/// A folder with one file.
struct Folder(TempDir);

impl Folder {
    fn of(name: &str, content: &Value) -> (Self, PathBuf) {
        let folder = Self(tempfile::tempdir().unwrap());
        let path = folder.file(name, content.to_string());
        (folder, path)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }
}

fn read_json(content: &Value) -> Result<Option<Vec<Labelled>>> {
    let (_folder, path) = Folder::of("labelled.json", content);
    read(&path)
}

fn only(content: &Value) -> Labelled {
    let mut all = read_json(content).unwrap().unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn refused(content: &Value) -> String {
    read_json(content).unwrap_err().message().to_owned()
}

/// Role and text of each message.
fn shown(labelled: &Labelled) -> Vec<(Role, String)> {
    let all = labelled.messages.iter();
    all.map(|one| (one.message.role(), text_of(&one.message).trim_end().to_owned())).collect()
}

fn neutral() -> Value {
    json!({
        "id": "walk",
        "messages": [
            {"id": "a", "speaker": "Ada", "time": "1 May", "text": "I moved to Rome."},
            {"id": "b", "speaker": "Ben", "time": "1 May", "text": "Nice."},
            {"id": 3, "speaker": "Ada", "time": "2 May", "text": "And back."},
        ],
        "questions": [
            {"text": "Where did Ada move?", "answer": "to Rome", "evidence": ["a"], "category": 1},
            {"text": "When was she back?", "answer": 2, "evidence": [3, "a", 3]},
            {"text": "Who else?", "evidence": []},
        ],
    })
}

#[test]
fn the_neutral_form_tells_speakers_and_times() {
    let walk = only(&neutral());
    assert!(walk.place.ends_with("labelled.json, walk"), "{}", walk.place);
    let said = |role, text: &str| (role, text.to_owned());
    assert_eq!(
        shown(&walk),
        [
            said(Role::User, "[1 May] Ada: I moved to Rome."),
            said(Role::Assistant, "Ben: Nice."),
            said(Role::User, "[2 May] Ada: And back."),
        ]
    );
    assert_eq!(walk.messages.iter().map(|one| &*one.id).collect::<Vec<_>>(), ["a", "b", "3"]);
    assert_eq!(walk.messages[0].text, "I moved to Rome.");
    let evidence: Vec<_> = walk.questions.iter().map(|one| one.evidence.clone()).collect();
    assert_eq!(evidence, [vec![0], vec![0, 2]]);
    assert_eq!(walk.questions[1].answer.as_deref(), Some("2"));
    assert_eq!(walk.questions[0].category.as_deref(), Some("1"));
    assert_eq!((walk.unlabelled, walk.unknown_labels), (1, 0));
}

#[test]
fn several_conversations_are_an_array_and_roles_are_taken_as_given() {
    let roles = json!({
        "messages": [
            {"id": 1, "role": "system", "text": "Be brief."},
            {"id": 2, "role": "assistant", "text": "北京"},
            {"id": 3, "role": "user", "text": "Hi."},
        ],
        "questions": [{"text": "?", "evidence": [2]}],
    });
    let all = read_json(&json!([neutral(), roles])).unwrap().unwrap();
    assert_eq!(all.len(), 2);
    assert!(all[1].place.ends_with(", conversation 2"), "{}", all[1].place);
    let roles: Vec<_> = shown(&all[1]).into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, [Role::System, Role::Assistant, Role::User]);
}

#[test]
fn locomo_is_read_in_the_order_of_its_sessions() {
    let turn = |id: &str, speaker: &str, text: &str| json!({"dia_id": id, "speaker": speaker, "text": text});
    let mut image = turn("D10:1", "Ada", "Look!");
    image["blip_caption"] = "a dog on a beach".into();
    let sample = json!({
        "sample_id": "pair-1",
        "event_summary": {"session_1": 5},
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_10_date_time": "2 May",
            "session_10": [image],
            "session_2_date_time": "1 May",
            "session_2": [turn("D2:1", "Ben", "Hello."), turn("D2:2", "Ada", "Hi.")],
            "session_11_date_time": "3 May",
        },
        "qa": [
            {"question": "What did Ada see?", "answer": "a dog", "evidence": ["D2:1; D10:1"], "category": 4},
            {"question": "And Ben?", "adversarial_answer": "a cat", "evidence": ["D2:1", "D99:9"], "category": 5},
            {"question": "Why?", "answer": 7, "evidence": ["D"], "category": 3},
        ],
    });
    let pair = only(&json!([sample]));
    assert!(pair.place.ends_with(", pair-1"), "{}", pair.place);
    let said = |role, text: &str| (role, text.to_owned());
    assert_eq!(
        shown(&pair),
        [
            said(Role::Assistant, "[1 May] Ben: Hello."),
            said(Role::User, "Ada: Hi."),
            said(Role::User, "[2 May] Ada: Look! [image: a dog on a beach]"),
        ]
    );
    let evidence: Vec<_> = pair.questions.iter().map(|one| one.evidence.clone()).collect();
    assert_eq!(evidence, [vec![0, 2], vec![0]]);
    assert_eq!(pair.questions[1].answer, None);
    // Published labels without a message of that name are counted, not refused.
    assert_eq!((pair.unlabelled, pair.unknown_labels), (1, 2));
}

#[test]
fn longmemeval_takes_the_marked_turns_for_evidence() {
    let instance = json!({
        "question_id": "q7",
        "question_type": "single-session-user",
        "question": "What is the colour of the bike?",
        "answer": "red",
        "question_date": "3 May",
        "haystack_session_ids": ["s1", "s2"],
        "haystack_dates": ["1 May", "2 May"],
        "haystack_sessions": [
            [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}],
            [{"role": "user", "content": "My bike is red.", "has_answer": true}],
        ],
        "answer_session_ids": ["s2"],
    });
    let history = only(&json!([instance]));
    assert!(history.place.ends_with(", q7"), "{}", history.place);
    assert_eq!(history.messages[2].id, "2:1");
    assert_eq!(shown(&history)[2], (Role::User, "[2 May] My bike is red.".to_owned()));
    let question = &history.questions[0];
    assert_eq!((&*question.evidence, question.category.as_deref()), (&[2][..], Some("single-session-user")));
}

fn beam() -> Value {
    json!([
        {"batch_number": 1, "time_anchor": null, "turns": [
            [{"role": "user", "id": 0, "time_anchor": "May-1", "content": "I use Flask 3."},
             {"role": "assistant", "id": 1, "content": "Good."}],
            [{"role": "user", "id": 2, "content": "Now Flask 4."}]]},
        {"batch_number": 2, "turns": [[{"role": "assistant", "id": 3, "content": "Fine."}]]},
    ])
}

#[test]
fn beam_is_read_with_the_questions_beside_it() {
    let (folder, path) = Folder::of("chat.json", &beam());
    let missing = read(&path).unwrap_err();
    assert!(missing.message().contains("expected them in"), "{}", missing.message());
    let questions = json!({
        "abstention": [{"question": "Why?", "ideal_response": "There is no information."}],
        "knowledge_update": [{
            "question": "Which Flask?",
            "answer": "Flask 4",
            "source_chat_ids": {"original_info": [0], "updated_info": [2]},
        }],
        "summarization": [{"question": "In short?", "ideal_summary": "Flask.", "source_chat_ids": [0, [3]]}],
    });
    folder.file("probing_questions/probing_questions.json", questions.to_string());
    let chat = read(&path).unwrap().unwrap().remove(0);
    assert_eq!(chat.messages.len(), 4);
    assert_eq!(shown(&chat)[0], (Role::User, "[May-1] I use Flask 3.".to_owned()));
    let asked: Vec<_> =
        chat.questions.iter().map(|one| (one.category.as_deref(), one.evidence.clone())).collect();
    assert_eq!(asked, [(Some("knowledge_update"), vec![0, 2]), (Some("summarization"), vec![0, 3])]);
    assert_eq!(chat.questions[1].answer.as_deref(), Some("Flask."));
    assert_eq!(chat.unlabelled, 1);
}

#[test]
fn other_files_are_left_to_those_who_read_transcripts() {
    let chat = json!({"messages": [{"role": "user", "content": "Hi."}]});
    let folder = Folder(tempfile::tempdir().unwrap());
    let lines = format!("{chat}\n{chat}\n");
    for other in
        [chat.to_string(), lines, json!([chat]).to_string(), String::new(), "[".to_owned(), "no".to_owned()]
    {
        assert!(read(&folder.file("other", &other)).unwrap().is_none(), "{other}");
    }
    assert!(read(folder.0.path()).unwrap().is_none());
    assert!(read(&folder.0.path().join("missing")).unwrap().is_none());
    let marked = format!("\u{FEFF}{}", neutral());
    assert!(read(&folder.file("marked", marked)).unwrap().is_some());
}

#[test]
fn what_is_wrong_is_refused_with_its_place_and_a_remedy() {
    let with = |pointer: &str, value: Value| {
        let mut wrong = neutral();
        *wrong.pointer_mut(pointer).unwrap() = value;
        refused(&wrong)
    };
    for (found, expected) in [
        (with("/messages", json!([])), "it has no messages; give it"),
        (with("/questions", json!([])), "it has no questions; give it some"),
        (
            with("/questions/1/evidence", json!(["a", "zz"])),
            "question 2 names \"zz\" as evidence, and no message",
        ),
        (with("/messages/1/id", "a".into()), "message 2 has the id \"a\" of an earlier one; give each"),
        (with("/messages/1/speaker", Value::Null), "message 2 has neither a role nor a speaker; give it"),
        (with("/messages/1/text", json!(["SECRET"])), "expected a string at line 1 column"),
        (
            with("/messages/0", json!({"id": "a", "role": "SECRET", "text": "SECRET, expected"})),
            "expected one of `system`",
        ),
        (with("/questions/0", json!({"text": "SECRET"})), "missing field `evidence` at line 1 column"),
    ] {
        assert!(found.contains("labelled.json") && found.contains(expected), "{found}");
        assert!(!found.contains("SECRET"), "{found}");
    }
}
