//! Judges a list of messages, independent of the contender that returned it.

use core::hash::{BuildHasher as _, BuildHasherDefault};
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};

use epitome_core::TokenCounter;
use epitome_core::message::Role;

use super::said::Said;

/// The input messages of every contender.
pub struct Given {
    said: Vec<Said>,
    counter: Box<dyn TokenCounter + Send + Sync>,
    /// The size of each message, by its digest.
    tokens: HashMap<u64, u64>,
    /// For each message of the model, by its digest: the digests of the requests before the message. Equal messages
    /// share a digest.
    requests: HashMap<u64, Vec<u64>>,
}

impl core::fmt::Debug for Given {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Given").field("messages", &self.said.len()).finish_non_exhaustive()
    }
}

/// Faults and size of a list of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Number of messages.
    pub messages: usize,
    /// Their size by the common counter.
    pub tokens: u64,
    /// Results whose call is not before them, and second results of one call.
    pub orphans: usize,
    /// Calls without a result.
    pub unanswered: usize,
    /// Messages of the model whose request is not before them, unless a new message before them could be a summary of
    /// the request.
    pub unasked: usize,
    /// Whether the system message is first and unchanged.
    pub system_kept: bool,
    /// Role of the first message after the system message.
    pub first: Option<Role>,
    /// Messages that are not among the input messages: shortened, merged or new ones.
    pub changed: usize,
}

impl Verdict {
    /// Whether a provider accepts the list with its system message, if it requires pairs of calls and results and a
    /// first message of the user.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.is_paired() && self.system_kept && self.first == Some(Role::User)
    }

    /// Whether every call has its result, and every result its call.
    #[must_use]
    pub const fn is_paired(&self) -> bool {
        self.orphans == 0 && self.unanswered == 0
    }
}

impl Given {
    /// Creates a judge for these input messages; `counter` is the name of the common token counter.
    #[must_use]
    pub fn new(said: Vec<Said>, counter: &str) -> Self {
        let counter = epitome::tokens::counter_by_name(counter).unwrap();
        let tokens = said.iter().map(|said| (digest(said), said.tokens(&*counter))).collect();
        let (mut requests, mut asked) = (HashMap::<u64, Vec<u64>>::new(), None);
        for message in &said {
            match message.role {
                Role::User => asked = Some(digest(message)),
                Role::Assistant => requests.entry(digest(message)).or_default().extend(asked),
                _ => {}
            }
        }
        Self { said, counter, tokens, requests }
    }

    /// The input messages.
    #[must_use]
    pub fn said(&self) -> &[Said] {
        &self.said
    }

    /// Judges a list.
    #[must_use]
    pub fn judge(&self, returned: &[Said]) -> Verdict {
        let (mut open, mut orphans) = (HashSet::new(), 0);
        let (mut tokens, mut changed) = (0, 0);
        let (mut seen, mut is_summarized, mut unasked) = (HashSet::new(), false, 0);
        for said in returned {
            let digest = digest(said);
            match self.tokens.get(&digest) {
                Some(known) => tokens += known,
                None => {
                    tokens += said.tokens(&*self.counter);
                    changed += 1;
                    // A new message may be a summary; a shortened tool result is not a summary.
                    is_summarized |= said.role != Role::Tool && said.calls.is_empty();
                }
            }
            let asked = self.requests.get(&digest).filter(|asked| !asked.is_empty());
            let is_asked = asked.is_none_or(|asked| asked.iter().any(|request| seen.contains(request)));
            unasked += usize::from(!is_asked && !is_summarized);
            seen.insert(digest);
            open.extend(said.calls.iter().map(|call| call.id.as_str()));
            if let Some(id) = &said.answers {
                orphans += usize::from(!open.remove(id.as_str()));
            }
        }
        let system = self.said.first().filter(|said| said.role == Role::System);
        Verdict {
            messages: returned.len(),
            tokens,
            orphans,
            unanswered: open.len(),
            unasked,
            system_kept: system == returned.first().filter(|said| said.role == Role::System),
            first: returned.iter().map(|said| said.role).find(|role| *role != Role::System),
            changed,
        }
    }
}

fn digest(said: &Said) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(said)
}

#[cfg(test)]
mod tests {
    use super::super::said::SaidCall;
    use super::*;

    fn call(ids: &[&str]) -> Said {
        let call = |id: &&str| SaidCall { id: (*id).into(), name: "read".into(), arguments: "{}".into() };
        Said { calls: ids.iter().map(call).collect(), ..Said::text(Role::Assistant, "") }
    }

    fn conversation() -> Vec<Said> {
        vec![
            Said::text(Role::System, "Be brief."),
            Said::text(Role::User, "Read both."),
            call(&["a", "b"]),
            Said::result("a", "one"),
            Said::result("b", "two"),
            Said::text(Role::Assistant, "Read."),
        ]
    }

    /// The conversation without the messages at these places.
    fn without(places: &[usize]) -> Verdict {
        let given = Given::new(conversation(), "estimate");
        let kept = conversation().into_iter().enumerate().filter(|(at, _)| !places.contains(at));
        given.judge(&kept.map(|(_, said)| said).collect::<Vec<_>>())
    }

    #[test]
    fn a_whole_conversation_is_valid_and_has_its_size() {
        let verdict = without(&[]);
        let size: u64 =
            conversation().iter().map(|said| said.tokens(&epitome_core::ClassEstimator::new())).sum();
        assert!(verdict.is_valid());
        assert_eq!((verdict.messages, verdict.tokens, verdict.changed), (6, size, 0));
    }

    #[test]
    fn each_fault_is_found() {
        assert_eq!((without(&[2]).orphans, without(&[2]).unanswered), (2, 0));
        assert_eq!((without(&[3]).orphans, without(&[3]).unanswered), (0, 1));
        assert!(!without(&[0]).system_kept && without(&[0]).first == Some(Role::User));
        assert_eq!(without(&[1]).first, Some(Role::Assistant));
        assert_eq!(without(&[1, 2, 3, 4, 5]).first, None);
        assert_eq!(
            (without(&[1]).unasked, without(&[]).unasked, without(&[1, 2, 3, 4, 5]).unasked),
            (2, 0, 0)
        );
    }

    #[test]
    fn an_answer_needs_its_request_or_a_summary_before_it() {
        let said = |role, text: &str| Said::text(role, text);
        let turn =
            |at: usize| [said(Role::User, &format!("Q{at}")), said(Role::Assistant, &format!("A{at}"))];
        let given = Given::new((0..4).flat_map(turn).collect(), "estimate");
        let [[q0, a0], [_, a1], _, [q3, a3]] = [0, 1, 2, 3].map(turn);
        let unasked = |returned: &[&Said]| {
            given.judge(&returned.iter().map(|said| (*said).clone()).collect::<Vec<_>>()).unasked
        };
        assert_eq!(unasked(&[&q0, &a0, &q3, &a3]), 0);
        assert_eq!(unasked(&[&q0, &a1, &q3, &a3]), 1);
        assert_eq!(unasked(&[&q3, &a3, &q0]), 0);
        assert_eq!(unasked(&[&a3, &q3]), 1);
        assert_eq!(unasked(&[&q0, &said(Role::Assistant, "[Summary]"), &a1, &q3, &a3]), 0);
    }

    #[test]
    fn a_second_result_of_one_call_and_a_result_before_it_are_orphans() {
        let given = Given::new(conversation(), "estimate");
        let mut twice = conversation();
        twice.push(Said::result("a", "one"));
        assert_eq!(given.judge(&twice).orphans, 1);
        let mut before = conversation();
        before.swap(2, 3);
        assert_eq!((given.judge(&before).orphans, given.judge(&before).unanswered), (1, 1));
    }

    #[test]
    fn a_shortened_message_is_changed_and_counted_as_it_is() {
        let given = Given::new(conversation(), "estimate");
        let mut shorter = conversation();
        shorter[3].text = "[cleared]".into();
        assert_eq!(given.judge(&shorter).changed, 1);
        shorter[0].text.push_str(" And kind.");
        assert!(!given.judge(&shorter).system_kept);
    }
}
