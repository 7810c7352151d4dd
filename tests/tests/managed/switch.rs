//! A session that goes from one provider to the other and back.

use std::sync::Arc;

use epitome::compactors::{DigestSummarizer, Managed};

use crate::managed::talk::{Talk, auto};
use crate::managed::{anthropic, openai};

/// A sealed part of one provider is never sent to the other, but its text is. Earlier facts are known to the end if the
/// provider has written the text itself.
#[test]
fn from_anthropic_to_openai_and_back() {
    let mut talk = Talk::new(anthropic::MODEL);
    let begins = |at_openai: bool, talk: &mut Talk| {
        let before = talk.compacted;
        let (sent, last) = match at_openai {
            true => {
                talk.turn_to("m");
                let chat = openai::sessions::Chat::new("openai");
                let service = Managed::new(Arc::new(openai::service("openai"))).unwrap();
                let last = talk.go_on(
                    40,
                    &chat,
                    auto(service.with_portable_text(Arc::new(DigestSummarizer)), 4_000),
                );
                (chat.sent, last)
            }
            false => {
                talk.turn_to(anthropic::MODEL);
                let chat = anthropic::sessions::Chat::new();
                let last = talk.go_on(40, &chat, auto(anthropic::sessions::managed(), 4_000));
                (chat.sent, last)
            }
        };
        assert!(talk.compacted > before, "nothing was compacted");
        let sent = sent.lock().unwrap();
        (sent.first().unwrap().to_string(), last)
    };
    let (first, _) = begins(false, &mut talk);
    assert!(!first.contains("So far: FACT-"));
    let (first, last) = begins(true, &mut talk);
    assert!(first.contains("So far: FACT-"), "the text is sent: {first}");
    assert!(!first.contains("signature") && !first.contains("\"compaction\""), "what is sealed is not");
    assert!(last.ends_with(&format!(" {} facts", talk.facts())), "{last}");
    let (first, _) = begins(false, &mut talk);
    assert!(first.contains("[Conversation Summary]"), "the text is sent");
    assert!(!first.contains("encrypted_content") && !first.contains("gAAAA"), "what is sealed is not");
    let (first, _) = begins(true, &mut talk);
    assert!(first.contains("So far: FACT-") && !first.contains("signature"));
}

/// Provider and model of a leg of a session.
type Leg = (&'static str, &'static str);

const LEGS: [Leg; 4] = [
    ("openai", "m"),
    ("openai", "m-mini"),
    ("anthropic", "claude-opus-4-8"),
    ("anthropic", "claude-haiku-4-6"),
];

/// A session changes from each model to each other, of the same provider and of another. A part that is sealed for one
/// model is never sent to another, but its text is.
#[test]
fn from_each_model_to_each_other() {
    // Each of the twelve changes once, and back to the first model.
    let way = [0, 1, 2, 3, 0, 2, 0, 3, 2, 1, 3, 1, 0];
    let mut seen: Vec<(usize, usize)> = way.windows(2).map(|pair| (pair[0], pair[1])).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 12, "each pair");
    let mut talk = Talk::new(LEGS[0].1);
    for (at, leg) in way.into_iter().enumerate() {
        let (provider, model) = LEGS[leg];
        talk.turn_to(model);
        let before = talk.compacted;
        let sent = match provider {
            "openai" => {
                let chat = openai::sessions::Chat::new("openai");
                let service = Managed::new(Arc::new(openai::service("openai"))).unwrap();
                let service = service.with_portable_text(Arc::new(DigestSummarizer));
                talk.go_on(24, &chat, auto(service, 4_500));
                chat.sent
            }
            _ => {
                let chat = anthropic::sessions::Chat::new();
                talk.go_on(24, &chat, auto(anthropic::sessions::managed(), 4_500));
                chat.sent
            }
        };
        assert!(talk.compacted > before, "leg {at}: nothing was compacted");
        let sent = sent.lock().unwrap();
        let (first, last) = (sent.first().unwrap().to_string(), sent.last().unwrap().to_string());
        assert!(!first.contains(r#""type":"compaction""#) && !first.contains("gAAAA"), "leg {at}: {first}");
        assert!(last.contains(r#""type":"compaction""#), "leg {at}: its own is sent");
        let text = first.contains("[Conversation Summary]") || first.contains("So far: ");
        assert!(at == 0 || text, "leg {at}: the text is sent");
    }
}
