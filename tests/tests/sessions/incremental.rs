//! Three ways to keep a session lead to the same log: a history that is loaded whole for each run, a history of which
//! only the last turn is loaded, and a history that is opened once and never loaded again.

use std::sync::Arc;

use epitome::compactors::Truncation;
use epitome::core::message::Role;
use epitome::core::{Budget, ClassEstimator, Pass, Seq};
use epitome::history::{AppendToken, History, HistoryStore, Logged, MemoryStore, SessionId, SqliteStore};
use epitome::message::{Approval, ApprovalAnswer, Message, Part, Reasoning, ToolCall};
use epitome::provider::{HistoryProvider, NamedAgent, Providers};
use epitome::session::{AgentResponse, AgentSession, SessionContext};
use epitome_tests::cases::{Census, check};
use futures::executor::block_on;
use proptest::collection::vec;
use proptest::prelude::*;

/// Messages of one run, and whether another writer compacts the session before it.
#[derive(Debug, Clone)]
struct Step {
    compacts: bool,
    input: Vec<Message>,
    response: Vec<Message>,
}

/// Few ids, so that they occur again, and are answered late, twice or never.
fn id() -> impl Strategy<Value = String> {
    (0_u8..5).prop_map(|id| format!("c{id}"))
}

fn of_the_model() -> impl Strategy<Value = Message> {
    let words = "[a-z ]{1,60}";
    let part = prop_oneof![
        words.prop_map(|text| Part::Text(text.into())),
        words.prop_map(|text| Part::Reasoning(Reasoning::new(text))),
        id().prop_map(|id| Part::ToolCall(ToolCall::new(id, "read", "{}"))),
        id().prop_map(|id| Part::ApprovalRequest(Approval::new(format!("a-{id}"), id))),
    ];
    (vec(part, 1..4), prop::option::weighted(0.3, 0_u8..3)).prop_map(|(parts, response)| {
        let message = Message::new(Role::Assistant, parts);
        response.into_iter().fold(message, |message, id| message.with_response_id(format!("r{id}")))
    })
}

fn answer() -> impl Strategy<Value = Message> {
    prop_oneof![
        3 => (id(), "[a-z ]{1,80}").prop_map(|(id, text)| Message::tool(id, text)),
        1 => (id(), any::<bool>()).prop_map(|(id, approved)| {
            let answer = ApprovalAnswer::new(Approval::new(format!("a-{id}"), id), approved);
            Message::new(Role::User, vec![Part::ApprovalResponse(answer)])
        }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let says = prop_oneof![
        4 => "[a-z ]{1,60}".prop_map(Message::user),
        1 => "[a-z ]{1,20}".prop_map(Message::system),
        3 => answer(),
    ];
    let responds = prop_oneof![3 => of_the_model(), 2 => answer()];
    (prop::bool::weighted(0.5), vec(says, 0..3), vec(responds, 0..6))
        .prop_map(|(compacts, input, response)| Step { compacts, input, response })
}

struct Stores {
    whole: Arc<dyn HistoryStore>,
    tail: Arc<dyn HistoryStore>,
    open: Arc<dyn HistoryStore>,
}

impl Stores {
    fn new(in_sqlite: bool) -> Self {
        let store = || -> Arc<dyn HistoryStore> {
            match in_sqlite {
                true => Arc::new(SqliteStore::open_in_memory().unwrap()),
                false => Arc::new(MemoryStore::new()),
            }
        };
        Self { whole: store(), tail: store(), open: store() }
    }

    fn providers(&self) -> Providers {
        let mut providers = Providers::default();
        providers.push(HistoryProvider::new("whole", Arc::clone(&self.whole))).unwrap();
        let tail = HistoryProvider::new("tail", Arc::clone(&self.tail)).load_messages(false);
        providers.push(tail).unwrap();
        providers
    }

    fn all(&self) -> [&Arc<dyn HistoryStore>; 3] {
        [&self.whole, &self.tail, &self.open]
    }
}

fn session() -> SessionId {
    SessionId::new("s")
}

fn open(store: &Arc<dyn HistoryStore>) -> History {
    block_on(History::open(Arc::clone(store), session(), Arc::new(ClassEstimator::new()))).unwrap()
}

fn logged(store: &Arc<dyn HistoryStore>) -> Vec<Logged> {
    let page = block_on(store.log(&session(), Seq(0)..Seq(u64::MAX), u32::MAX));
    page.map_or_else(|_| Vec::new(), |page| page.messages)
}

/// Another handle drops the older half. Returns whether it has dropped messages.
fn compact(store: &Arc<dyn HistoryStore>) -> bool {
    let budget = Budget::builder().window(10_000).reserve(0).without_goal().build().unwrap();
    block_on(open(store).compact(&budget, Pass::Manual, &Truncation::new())).unwrap().is_some()
}

fn check_case((steps, in_sqlite): (Vec<Step>, bool), census: &Census) -> Result<(), TestCaseError> {
    let stores = Stores::new(in_sqlite);
    let (providers, agent) = (stores.providers(), NamedAgent::new("a"));
    let mut kept = open(&stores.open);
    let mut one = AgentSession::with_id("s");
    for (number, Step { compacts, input, response }) in steps.into_iter().enumerate() {
        if compacts {
            let done = stores.all().map(compact);
            census.count("compacted", done[0]);
            prop_assert_eq!(done, [done[0]; 3]);
        }
        let said: Vec<Message> = input.iter().chain(&response).cloned().collect();
        let token = format!("run-{number}");
        let mut context = SessionContext::new(&one, token.as_str(), input);
        block_on(providers.before_run(&agent, &mut one, &mut context)).unwrap();
        context = context.with_response(AgentResponse::new(response));
        block_on(providers.after_run(&agent, &mut one, &mut context)).unwrap();
        if !said.is_empty() {
            block_on(HistoryProvider::append(&mut kept, &AppendToken::new(token), said)).unwrap();
        }
        let log = logged(&stores.whole);
        prop_assert_eq!(&logged(&stores.tail), &log, "the last turn is enough");
        prop_assert_eq!(&logged(&stores.open), &log, "so is what is at hand");
    }
    let log = logged(&stores.whole);
    census.count("late answer", log.iter().any(|it| it.entry.late));
    census.count("orphan", log.iter().any(|it| it.entry.orphan));
    census.count("hidden answer", log.iter().any(|it| it.entry.late && it.hidden_by.is_some()));
    let loaded = stores.all().map(open);
    for other in [&loaded[1], &loaded[2]] {
        prop_assert_eq!(other.live(), loaded[0].live());
        prop_assert_eq!((other.head(), other.revision()), (loaded[0].head(), loaded[0].revision()));
    }
    block_on(kept.reload()).unwrap();
    prop_assert_eq!(kept.live(), loaded[0].live());
    Ok(())
}

#[test]
fn the_last_turn_and_what_is_at_hand_group_as_the_whole_does() {
    let cases = (vec(step(), 2..10), prop::bool::weighted(0.1));
    let least = [("late answer", 150), ("orphan", 300), ("compacted", 200), ("hidden answer", 40)];
    check("incremental sessions", cases, &least, check_case);
}
