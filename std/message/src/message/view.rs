//! An owned message as a [`MessageView`], for planners and checks.

use std::collections::HashSet;

use epitome_core::attribution::AttributionView;
use epitome_core::message::{CallKind, MessageView, PartView, Parts, Role};

use super::{Message, Part};

/// A call with its result in the same message of the model has the kind [`CallKind::Hosted`], whichever side ran
/// it, because no result follows.
impl Parts for Message {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        let answered = self.answered_in_place();
        for part in &self.parts {
            match part {
                Part::ToolCall(call) if answered.contains(call.id.as_str()) => {
                    visit(PartView::ToolCall(call.view().with_kind(CallKind::Hosted)));
                }
                part => part.view(visit),
            }
        }
    }
}

impl MessageView for Message {
    fn role(&self) -> Role {
        self.role
    }

    fn attribution(&self) -> AttributionView<'_> {
        self.attribution().view()
    }

    fn response_id(&self) -> Option<&str> {
        self.response_id()
    }

    fn name(&self) -> Option<&str> {
        self.name()
    }
}

impl Message {
    /// The ids of the calls with results in this message of the model. An empty id does not count.
    fn answered_in_place(&self) -> HashSet<&str> {
        let result = |part: &'_ Part| matches!(part, Part::ToolResult(_));
        if self.role != Role::Assistant || !self.parts.iter().any(result) {
            return HashSet::new();
        }
        let results = self.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(result.call_id.as_str()).filter(|id| !id.is_empty()),
            _ => None,
        });
        results.collect()
    }
}

#[cfg(test)]
mod tests {
    use epitome_core::{
        GroupKind, IndexBuf, OpenCallTree, OpenCalls, PartSpan as Row, Pending, Profile, Repair, Span,
        Tokens, repair,
    };

    use super::*;
    use crate::message::{ToolCall, ToolResult};

    fn conversation(calls: &[&str], results: &[&str]) -> [Message; 3] {
        let call = |id: &&str| Part::ToolCall(ToolCall::new(*id, "read", "{}"));
        let result = |id: &&str| Part::ToolResult(ToolResult::new(*id, vec![Part::Text("long".into())]));
        let parts =
            calls.iter().map(call).chain(results.iter().map(result)).chain([Part::Text("Done.".into())]);
        [Message::user("Read."), Message::new(Role::Assistant, parts.collect()), Message::user("Go on.")]
    }

    /// The kind of the group, how many calls it leaves open, and how many results may be shortened.
    fn indexed(messages: &[Message]) -> (GroupKind, usize, usize) {
        let mut index = IndexBuf::with_parts(Vec::<Span>::new(), OpenCallTree::new(), Vec::<Row>::new());
        for message in messages {
            index.push_with_parts(message, Tokens(99), |_, _| Tokens(9)).unwrap();
        }
        let mut open = 0;
        index.open_calls().for_each(&mut |_, _| open += 1);
        let rows =
            index.view().parts().filter(|part| part.kind() == epitome_core::PartKind::ToolResult).count();
        (index.view().groups().nth(1).unwrap().kind(), open, rows)
    }

    #[test]
    fn a_call_with_its_result_in_one_message_is_answered() {
        let messages = conversation(&["c1", "c2"], &["c1", "c2"]);
        assert_eq!(indexed(&messages), (GroupKind::Hosted, 0, 2));
        for profile in Profile::ALL {
            let steps = repair(profile, &messages, Pending::Over);
            assert_eq!(steps, [0, 1, 2].map(Repair::Keep), "{}", profile.as_str());
        }
    }

    #[test]
    fn a_call_without_its_result_waits_for_it() {
        assert_eq!(indexed(&conversation(&["c1", "c2"], &["c2"])), (GroupKind::Exchange, 1, 1));
        assert_eq!(indexed(&conversation(&["c1"], &[])), (GroupKind::Exchange, 1, 0));
        // An empty id names no call.
        assert_eq!(indexed(&conversation(&[""], &[""])), (GroupKind::Exchange, 1, 0));
    }
}
