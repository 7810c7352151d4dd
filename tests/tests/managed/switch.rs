//! A session that goes from one provider to the other and back.

use std::sync::Arc;

use epitome::compactors::{DigestSummarizer, Managed};

use crate::talk::{Talk, auto};
use crate::{anthropic, openai};

/// What one has sealed is never sent to the other; its text is. What it was sent before is known to the end, where the
/// provider has written a text itself.
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
