//! Plants sentences in a conversation, and looks for them afterwards.

use core::ops::Range;
use std::collections::BTreeMap;

use epitome::core::TokenCounter;
use epitome::core::message::Role;
use epitome::message::{Message, Part};
use serde_json::Value;

use super::table::{CANARIES, Canary, Carrier, Kind, Newer};
use crate::commands::eval::need::Need;
use crate::commands::eval::prompt::CountedMessage;
use crate::commands::eval::rounds::Rounds;
use crate::commands::eval::shown::Shown;

/// A conversation with sentences planted in it.
pub(super) struct Planted {
    pub(super) messages: Vec<CountedMessage>,
    pub(super) canaries: Vec<PlantedCanary>,
}

/// A sentence, and the newer sentence that replaces it.
#[derive(Debug)]
pub(super) struct PlantedCanary {
    pub(super) kind: Kind,
    sentence: Need<&'static str>,
    newer: Option<Need<&'static str>>,
}

/// Fate of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The valid sentence is shown.
    Survived,
    /// The old sentence is shown, and the newer one that replaced it is not.
    Stale,
    Lost,
}

impl Planted {
    /// Plants every sentence for which the conversation has a carrier.
    pub(super) fn of(messages: &[CountedMessage], rounds: &Rounds, counter: &dyn TokenCounter) -> Self {
        let mut lines: BTreeMap<u32, Vec<&'static str>> = BTreeMap::new();
        let mut canaries = Vec::new();
        for carrier in Carrier::ALL {
            let own: Vec<&Canary> = CANARIES.iter().filter(|canary| canary.carrier == carrier).collect();
            let places = carriers(messages, carrier, 0..rounds.first() * 2 / 3);
            for (number, canary) in own.iter().enumerate() {
                // Spreads the sentences over all messages that can carry them.
                let Some(place) = places.get((2 * number + 1) * places.len() / (2 * own.len())) else {
                    continue;
                };
                lines.entry(*place).or_default().push(canary.sentence);
                let newer = canary.newer.and_then(|newer| {
                    let (place, sentence) = newer_place(messages, newer, *place, number, rounds)?;
                    lines.entry(place).or_default().push(sentence);
                    Some(need(sentence, place))
                });
                let sentence = need(canary.sentence, *place);
                canaries.push(PlantedCanary { kind: canary.kind, sentence, newer });
            }
        }
        let messages = (0_u32..).zip(messages).map(|(at, counted)| match lines.get(&at) {
            Some(lines) => CountedMessage::of(with_lines(&counted.message, lines), counter),
            None => counted.clone(),
        });
        Self { messages: messages.collect(), canaries }
    }
}

/// The place and text of a newer sentence: a message after the older one, of the user, else of a tool.
fn newer_place(
    messages: &[CountedMessage],
    newer: Newer,
    after: u32,
    number: usize,
    rounds: &Rounds,
) -> Option<(u32, &'static str)> {
    let (range, sentence) = match newer {
        Newer::Early(sentence) => (rounds.first() * 2 / 3..rounds.first(), sentence),
        Newer::Late(sentence) => (rounds.first()..rounds.third(), sentence),
    };
    let by = |carrier| {
        let places = carriers(messages, carrier, range.clone());
        let later: Vec<u32> = places.into_iter().filter(|place| *place > after).collect();
        later.get(number % later.len().max(1)).copied()
    };
    by(Carrier::User).or_else(|| by(Carrier::Tool)).map(|place| (place, sentence))
}

fn need(sentence: &'static str, place: u32) -> Need<&'static str> {
    Need { unit: sentence, stands_in: vec![place], needed_at: place }
}

impl PlantedCanary {
    /// The sentence that is valid after `said` messages.
    pub(super) fn valid(&self, said: usize) -> &Need<&'static str> {
        self.newer_by(said).unwrap_or(&self.sentence)
    }

    /// The newer sentence, if the first `said` messages contain it.
    pub(super) fn newer_by(&self, said: usize) -> Option<&Need<&'static str>> {
        self.newer.as_ref().filter(|newer| (newer.needed_at as usize) < said)
    }

    pub(super) fn fate(&self, shown: &Shown, said: usize) -> Fate {
        match (shown.has(self.valid(said)), self.newer_by(said)) {
            (true, _) => Fate::Survived,
            (false, Some(_)) if shown.has(&self.sentence) => Fate::Stale,
            (false, _) => Fate::Lost,
        }
    }
}

/// The messages in `range` that can carry a sentence. The first user message is the task, which every strategy keeps:
/// it carries a sentence only if there is no other user message.
fn carriers(messages: &[CountedMessage], carrier: Carrier, range: Range<usize>) -> Vec<u32> {
    let all = (0_u32..).zip(messages);
    let mut places: Vec<u32> =
        all.filter(|(_, counted)| carries(&counted.message, carrier)).map(|(at, _)| at).collect();
    let task = places.first().copied();
    places.retain(|place| range.contains(&(*place as usize)));
    if carrier == Carrier::User && places.len() > 1 && places.first().copied() == task {
        places.remove(0);
    }
    places
}

/// Whether a message has a text of this kind that a line can be added to.
fn carries(message: &Message, carrier: Carrier) -> bool {
    let is_text = |part: &Part| matches!(part, Part::Text(text) if !is_json(text));
    match carrier {
        Carrier::System => {
            matches!(message.role(), Role::System | Role::Developer) && message.parts().iter().any(is_text)
        }
        Carrier::User => message.role() == Role::User && message.parts().iter().any(is_text),
        Carrier::Tool => message.parts().iter().any(|part| match part {
            Part::ToolResult(result) => result.parts.iter().any(is_text),
            _ => false,
        }),
    }
}

/// Whether a text is JSON, which an added line would break.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<Value>(text).is_ok()
}

/// The message with these lines in its first text.
fn with_lines(message: &Message, lines: &[&str]) -> Message {
    let mut parts = message.parts().to_vec();
    for line in lines {
        add_line(&mut parts, line);
    }
    message.clone().with_parts(parts)
}

/// Adds a line to the first text that can hold one; returns whether there is such a text.
fn add_line(parts: &mut [Part], line: &str) -> bool {
    parts.iter_mut().any(|part| match part {
        Part::Text(text) if !is_json(text) => {
            *text = with_line(text, line).into();
            true
        }
        Part::ToolResult(result) => add_line(&mut result.parts, line),
        _ => false,
    })
}

/// The text with one more line, after the line break nearest to its middle, so that neither its beginning nor its end
/// contains the line. In a text of one line, the new line is the second.
fn with_line(text: &str, line: &str) -> String {
    let middle = text.len() / 2;
    let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
    match breaks.min_by_key(|at| at.abs_diff(middle)).and_then(|at| text.split_at_checked(at)) {
        Some((before, after)) => format!("{before}{line}\n{after}"),
        None => format!("{text}\n{line}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use epitome::message::{ToolCall, ToolResult};
    use epitome::tokens::counter_by_name;

    use super::*;

    /// A system message and sixty turns of a question, a call, its result and an answer.
    fn messages() -> Vec<CountedMessage> {
        let counter = counter_by_name("estimate").unwrap();
        let turns = (0..60).flat_map(|turn| {
            let id = format!("c{turn}");
            [
                Message::user(format!("question {turn}")),
                Message::new(Role::Assistant, vec![Part::ToolCall(ToolCall::new(&*id, "look", "{}"))]),
                Message::tool(&*id, format!("line one of {turn}\nline two of {turn}\nline three")),
                Message::assistant(format!("answer {turn}")),
            ]
        });
        let all = core::iter::once(Message::system("Be brief.")).chain(turns);
        all.map(|message| CountedMessage::of(message, &*counter)).collect()
    }

    fn planted(messages: &[CountedMessage]) -> (Planted, Rounds) {
        let rounds = Rounds::of(messages).unwrap();
        let counter = counter_by_name("estimate").unwrap();
        (Planted::of(messages, &rounds, &*counter), rounds)
    }

    #[test]
    fn every_sentence_is_planted_once_in_its_carrier_and_its_time() {
        let before = messages();
        let (Planted { messages, canaries }, rounds) = planted(&before);
        assert_eq!(canaries.len(), CANARIES.len());
        assert_eq!(canaries.iter().filter(|canary| canary.newer.is_some()).count(), 5);
        let text: Vec<&str> = messages.iter().map(|counted| &*counted.text).collect();
        let text = text.join("\n");
        for PlantedCanary { sentence, newer, .. } in &canaries {
            for need in newer.iter().chain([sentence]) {
                assert_eq!(text.matches(need.unit).count(), 1, "{}", need.unit);
                let [place] = need.stands_in.as_slice() else { panic!("{need:?}") };
                assert!(messages[*place as usize].text.contains(need.unit), "{need:?}");
            }
            assert!((sentence.needed_at as usize) < rounds.first() * 2 / 3, "{sentence:?}");
            assert!(newer.as_ref().is_none_or(|newer| newer.needed_at > sentence.needed_at), "{newer:?}");
        }
        assert_eq!(carriers(&before, Carrier::User, 0..10), [5, 9], "not the task");
        assert_eq!(carriers(&before, Carrier::User, 0..5), [1], "there is nothing else");
        // The task carries no sentence, and only the single system message carries several.
        assert!(messages[1].text == before[1].text);
        let places: HashSet<u32> = canaries.iter().map(|canary| canary.sentence.needed_at).collect();
        assert_eq!(places.len(), 11);
        assert_eq!(messages.len(), before.len());
    }

    #[test]
    fn newer_sentences_come_before_the_first_compaction_or_between_it_and_the_third() {
        let (Planted { canaries, .. }, rounds) = planted(&messages());
        let by = |said: usize| canaries.iter().filter(|canary| canary.newer_by(said).is_some()).count();
        assert_eq!((by(0), by(rounds.first()), by(rounds.third())), (0, 3, 5));
    }

    #[test]
    fn a_line_stands_in_the_middle_and_json_stays_as_it_is() {
        assert_eq!(with_line("aaa\nb\nc\ndd", "X"), "aaa\nX\nb\nc\ndd");
        assert_eq!(with_line("a", "X"), "a\nX");
        let result = |text: &str| {
            Message::new(
                Role::Tool,
                vec![Part::ToolResult(ToolResult::new("c", vec![Part::Text(text.into())]))],
            )
        };
        assert!(!carries(&result("{\"a\": 1}"), Carrier::Tool));
        assert!(carries(&result("{not json"), Carrier::Tool));
        assert!(!carries(&result("text"), Carrier::User));
        assert!(carries(
            &Message::new(Role::Developer, vec![Part::Text("Be brief.".into())]),
            Carrier::System
        ));
    }

    #[test]
    fn an_old_sentence_without_the_newer_one_is_stale() {
        let canary = PlantedCanary {
            kind: Kind::Fact,
            sentence: need("the old one", 3),
            newer: Some(need("the newer one", 9)),
        };
        let shown = |whole: &[u32], new: &[&str]| Shown {
            whole: whole.iter().copied().collect(),
            new: new.iter().map(|text| (*text).to_owned()).collect(),
            ..Shown::default()
        };
        for (whole, new, before, after) in [
            (&[3][..], &[][..], Fate::Survived, Fate::Stale),
            (&[9], &[], Fate::Lost, Fate::Survived),
            (&[3, 9], &[], Fate::Survived, Fate::Survived),
            (&[], &["so the newer one is valid"], Fate::Lost, Fate::Survived),
            (&[], &["so the old one is valid"], Fate::Survived, Fate::Stale),
            (&[1], &["the newer"], Fate::Lost, Fate::Lost),
        ] {
            let shown = shown(whole, new);
            assert_eq!(
                (canary.fate(&shown, 9), canary.fate(&shown, 10)),
                (before, after),
                "{whole:?} {new:?}"
            );
        }
    }
}
