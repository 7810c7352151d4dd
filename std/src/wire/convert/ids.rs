//! Ids of calls that the target takes.

use std::collections::{HashMap, HashSet};

use epitome_core::Seq;

use super::target::Target;
use crate::message::Str;

/// The ids that calls have been given.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    used: HashSet<Str>,
    /// Calls that no result has answered yet, by their own id: the group, the id and the name.
    open: HashMap<Str, Vec<(Seq, Str, Str)>>,
    calls: usize,
}

impl CallIds {
    /// The id of the next call, which is `own` where the target takes that and no call before has it.
    pub(super) fn call(&mut self, group: Seq, own: &Str, name: &Str, target: &Target) -> Str {
        self.calls = self.calls.saturating_add(1);
        let mut number = self.calls;
        let mut id = own.clone();
        while !target.takes_id(&id) || self.used.contains(&id) {
            id = Str::from(format!("call_{number}"));
            number = number.saturating_add(1);
        }
        self.used.insert(id.clone());
        self.open.entry(own.clone()).or_default().push((group, id.clone(), name.clone()));
        id
    }

    /// The id and the name of the call that the next result to `own` answers: the first that is open of the latest group that
    /// has one. None if there is no such call.
    pub(super) fn answer(&mut self, own: &Str) -> Option<(Str, Str)> {
        let open = self.open.get_mut(own)?;
        let latest = open.iter().map(|(group, ..)| *group).max()?;
        let at = open.iter().position(|(group, ..)| *group == latest)?;
        let (_, id, name) = open.remove(at);
        Some((id, name))
    }
}
