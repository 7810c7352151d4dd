//! A conversation with labelled questions, counted, and the needs of each question.

use core::iter;
use std::collections::{HashMap, HashSet};

use epitome::core::TokenCounter;
use epitome::message::Message;
use epitome::search::{MessageSearch, SearchIndex};

use crate::commands::eval::labelled::{Labelled, LabelledMessage, LabelledQuestion};
use crate::commands::eval::need::{Need, share};
use crate::commands::eval::prompt::{CountedMessage, Prompt};
use crate::commands::eval::shown::Shown;
use crate::commands::eval::words::terms;
use crate::failure::Result;

/// A conversation and the needs of its questions.
pub(in crate::commands::eval) struct QuestionedCase {
    pub(super) place: String,
    pub(super) messages: Vec<CountedMessage>,
    /// The label of each message.
    pub(super) ids: Vec<String>,
    pub(super) questions: Vec<Question>,
    /// The search index of the messages.
    pub(super) texts: SearchIndex,
    pub(super) unlabelled: u64,
    pub(super) unknown_labels: u64,
}

/// A question and the needs of its answer.
pub(super) struct Question {
    pub(super) text: String,
    pub(super) category: Option<String>,
    /// The question as the current request.
    request: CountedMessage,
    /// The texts of the messages that answer it.
    pub(super) evidence: Vec<Need<String>>,
    /// The words of the answer that these messages contain.
    terms: Vec<Need<String>>,
}

/// Number of messages that a search returns.
const BEST: usize = 10;

/// The shares of a question's needs that are shown; `None` if the question has no such need.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Retention {
    pub(super) evidence: Option<f64>,
    pub(super) answer_terms: Option<f64>,
}

impl QuestionedCase {
    pub(in crate::commands::eval) fn of(labelled: Labelled, counter: &dyn TokenCounter) -> Self {
        let Labelled { place, messages, questions, unlabelled, unknown_labels } = labelled;
        let places = Places::of(&messages);
        let questions = (0_u32..).zip(questions);
        let questions =
            questions.map(|(number, question)| places.question(number, question, counter)).collect();
        let (ids, messages): (_, Vec<_>) = messages.into_iter().map(|one| (one.id, one.message)).unzip();
        let messages: Vec<_> =
            messages.into_iter().map(|message| CountedMessage::of(message, counter)).collect();
        let mut texts = SearchIndex::new();
        messages.iter().for_each(|counted| texts.add(&counted.text));
        Self { place, messages, ids, questions, texts, unlabelled, unknown_labels }
    }

    pub(in crate::commands::eval) fn place(&self) -> &str {
        &self.place
    }

    pub(in crate::commands::eval) fn messages(&self) -> &[CountedMessage] {
        &self.messages
    }

    /// The conversation without the questions.
    pub(super) fn blind(&self) -> Result<Prompt<'_>> {
        Prompt::of(&self.messages)
    }

    /// The conversation with a question as its current request.
    pub(super) fn aware<'a>(&'a self, question: &'a Question) -> Result<Prompt<'a>> {
        Prompt::of(self.messages.iter().chain(iter::once(&question.request)))
    }

    /// The share of a question's needs that is shown. `new_terms` are the words of `shown.new`.
    pub(super) fn retention(
        &self,
        question: &Question,
        shown: &Shown,
        new_terms: &HashSet<String>,
    ) -> Retention {
        let has_term = |need: &Need<String>| shown.shows_whole(need) || new_terms.contains(&need.unit);
        Retention {
            evidence: share(&question.evidence, |need| shown.has(need), |_| 1.0),
            answer_terms: share(&question.terms, has_term, |need| need.rarity(self.messages.len())),
        }
    }

    /// The share of the evidence not shown that a search for the question returns among its [`BEST`] messages. The
    /// search covers all messages that are not shown unchanged. `None` if all evidence is shown.
    pub(super) fn found(&self, question: &Question, shown: &Shown) -> Option<f64> {
        let mut search = MessageSearch::new(&question.text);
        for (at, message) in (0_u32..).zip(&self.messages) {
            if !shown.whole.contains(&at) {
                search.add(at.into(), &message.message);
            }
        }
        let best = search.nearest(BEST);
        let lost = question.evidence.iter().filter(|need| !shown.has(need));
        let found = lost.map(|need| need.stands_in.iter().any(|at| best.contains(&u64::from(*at))));
        let (all, found) = found.fold((0_u32, 0_u32), |(all, sum), one| (all + 1, sum + u32::from(one)));
        (all > 0).then(|| f64::from(found) / f64::from(all))
    }
}

/// Positions of texts, and positions of words.
struct Places<'m> {
    messages: &'m [LabelledMessage],
    texts: HashMap<&'m str, Vec<u32>>,
    terms: HashMap<String, Vec<u32>>,
}

impl<'m> Places<'m> {
    fn of(messages: &'m [LabelledMessage]) -> Self {
        let (mut texts, mut by_term) = (HashMap::<_, Vec<u32>>::new(), HashMap::<_, Vec<u32>>::new());
        for (position, message) in (0..).zip(messages) {
            texts.entry(&*message.text).or_default().push(position);
            for term in terms(&message.text) {
                by_term.entry(term).or_default().push(position);
            }
        }
        Self { messages, texts, terms: by_term }
    }

    fn question(&self, number: u32, question: LabelledQuestion, counter: &dyn TokenCounter) -> Question {
        let evidence: Vec<&str> = question
            .evidence
            .iter()
            .filter_map(|at| self.messages.get(*at as usize))
            .map(|it| &*it.text)
            .collect();
        let in_evidence: HashSet<String> = evidence.iter().flat_map(|text| terms(text)).collect();
        let answer = terms(question.answer.as_deref().unwrap_or_default());
        let request = Message::user(&*question.text);
        let need = |unit: String, stands_in: Option<&Vec<u32>>| Need {
            unit,
            stands_in: stands_in.cloned().unwrap_or_default(),
            needed_at: number,
        };
        Question {
            request: CountedMessage::of(request, counter),
            evidence: evidence.into_iter().map(|text| need(text.to_owned(), self.texts.get(text))).collect(),
            terms: answer
                .into_iter()
                .filter(|term| in_evidence.contains(term))
                .map(|term| need(term.clone(), self.terms.get(&term)))
                .collect(),
            text: question.text,
            category: question.category,
        }
    }
}
