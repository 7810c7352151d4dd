//! Ids of calls that the target accepts.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use epitome_core::Seq;
use epitome_message::Str;

use super::target::Target;

/// The ids that calls have in the target.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    used: HashSet<Str>,
    /// Calls without a result so far, by their own id and their group: the new id and the name.
    open: HashMap<Str, BTreeMap<Seq, VecDeque<(Str, Str)>>>,
    calls: usize,
    /// The number of the last id that was made up. All ids from the number of its call up to it were in use.
    made: usize,
}

impl CallIds {
    /// Returns the id of the next call: `own`, if the target accepts it and no earlier call has it.
    pub(super) fn call(&mut self, group: Seq, own: &Str, name: &Str, target: &Target) -> Str {
        self.calls = self.calls.saturating_add(1);
        let mut number = self.calls.max(self.made);
        let mut id = own.clone();
        while !target.limits.takes_id(&id) || (self.used.contains(&id) && !target.leaves_out_id(&id)) {
            id = Str::from(format!("call_{number}"));
            self.made = number;
            number = number.saturating_add(1);
        }
        self.used.insert(id.clone());
        let open = self.open.entry(own.clone()).or_default().entry(group).or_default();
        open.push_back((id.clone(), name.clone()));
        id
    }

    /// Returns the id and the name of the call that the next result to `own` answers: the first open call of the latest
    /// group with an open call. `None` if there is no such call.
    pub(super) fn answer(&mut self, own: &Str) -> Option<(Str, Str)> {
        let groups = self.open.get_mut(own)?;
        let mut latest = groups.last_entry()?;
        let found = latest.get_mut().pop_front();
        if latest.get().is_empty() {
            latest.remove();
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use epitome_message::Message;

    use crate::{ConversionLossKind, Format, ReadOptions, convert, read};

    /// Each answer that is read by itself begins to count anew.
    #[test]
    fn ids_that_were_given_to_calls_of_gemini_are_never_written() {
        let answer = |args: &str| {
            let text =
                format!(r#"[{{"role":"model","parts":[{{"functionCall":{{"name":"f","args":{args}}}}}]}}]"#);
            let options = ReadOptions::default().with_from(Format::Gemini);
            read(text, &options).unwrap().conversations()[0].messages().next().unwrap().clone()
        };
        let result = |text: &str| Message::tool("gemini:1:0", text);
        let (one, two) = (answer(r#"{"a":1}"#), answer(r#"{"a":2}"#));
        let messages = [Message::user("go"), one, result("one"), two, result("two")];
        let gemini = convert(&messages, Format::Gemini).unwrap();
        assert_eq!(gemini.losses, []);
        assert!(!gemini.text.contains("\"id\""), "{}", gemini.text);
        let places = [r#"{"a":1}"#, "one", r#"{"a":2}"#, "two"].map(|what| gemini.text.find(what).unwrap());
        assert!(places.is_sorted(), "{}", gemini.text);
        // Elsewhere ids are unique.
        let chat = convert(&messages, Format::OpenaiChat).unwrap();
        let kinds: Vec<_> = chat.losses.iter().map(|loss| (loss.message, loss.kind)).collect();
        assert_eq!((kinds, chat.text.matches("call_2").count()), (vec![(3, ConversionLossKind::CallId)], 2));
    }
}
