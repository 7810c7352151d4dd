//! The server, and stored sessions.

use core::error::Error;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, LazyLock};

use epitome::compaction::{CompactionCx, CompactionOutcome, Compactor};
use epitome::compactors::Managed;
use epitome::compactors::managed::CompactionService;
use epitome::core::message::Role;
use epitome::core::{Budget, ClassEstimator, Pass};
use epitome::history::{AppendToken, History, HistoryStore, SessionId};
use epitome::message::{Message, Part, ToolCall};
use epitome::session::SessionError;

/// The server, which ends with this process: its standard input is then closed.
struct Server {
    _child: Child,
    url: String,
}

static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let program = env!("CARGO_BIN_EXE_fake-vendors");
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    Server { _child: child, url: url.trim().to_owned() }
});

/// URL of the server.
pub(crate) fn server() -> &'static str {
    &SERVER.url
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) async fn open(store: &Arc<dyn HistoryStore>) -> History {
    let counter = Arc::new(ClassEstimator::new());
    History::open(Arc::clone(store), SessionId::new("s"), counter).await.unwrap()
}

pub(crate) async fn append(history: &mut History, messages: Vec<Message>) {
    let token = AppendToken::new(format!("{}", history.head()));
    history.append(&token, messages).await.unwrap();
}

/// Ten turns, each with a call.
pub(crate) async fn ten_turns(store: &Arc<dyn HistoryStore>) -> History {
    let mut history = open(store).await;
    append(&mut history, vec![Message::system("Be brief.")]).await;
    for turn in 0..10 {
        let id = format!("c{turn}");
        let call = Part::ToolCall(ToolCall::new(id.clone(), "look", "{}"));
        let turn = vec![
            Message::user(format!("question {turn}")),
            Message::new(Role::Assistant, vec![call]),
            Message::tool(id, format!("FACT-{turn}: {}", "found where it was. ".repeat(30))),
            Message::assistant("That is how it is."),
        ];
        append(&mut history, turn).await;
    }
    history
}

/// A new name for a series of requests, by which the server counts their faults.
pub(crate) fn case() -> String {
    static CASES: AtomicUsize = AtomicUsize::new(0);
    format!("{}-{}", std::process::id(), CASES.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn managed(service: impl CompactionService + 'static) -> Managed {
    Managed::new(Arc::new(service)).unwrap()
}

/// Compacts all but the newest turns.
pub(crate) async fn compact(
    history: &mut History,
    compactor: &dyn Compactor,
) -> (Result<CompactionOutcome, SessionError>, Vec<epitome::core::Usage>) {
    let budget = Budget::builder().window(1_000_000).trigger(500_000).without_goal().build().unwrap();
    let mut cx = CompactionCx::new(history, budget, Pass::Manual);
    let outcome = compactor.compact(&mut cx).await;
    (outcome, cx.costs().told())
}

/// The visible messages. Checks that a fresh process shows the same messages.
pub(crate) async fn shown(history: &History, store: &Arc<dyn HistoryStore>) -> Vec<Message> {
    let shown: Vec<Message> = history.projection().cloned().collect();
    let fresh: Vec<Message> = open(store).await.projection().cloned().collect();
    assert_eq!(shown, fresh, "what a fresh process shows");
    shown
}

/// All texts of an error and its sources.
pub(crate) fn all_of(error: &(dyn Error + 'static)) -> String {
    let (mut said, mut next) = (String::new(), Some(error));
    while let Some(error) = next {
        said += &format!("{error} {error:?} {error:#?}\n");
        next = error.source();
    }
    said
}
