//! A session over SQLite: append, compact, and load again as a fresh process would.
//!
//! `cargo run --example sqlite_session --features sqlite`

use std::sync::Arc;

use epitome::compactors::Truncation;
use epitome::core::{Budget, ClassEstimator, Pass, Revision};
use epitome::history::{AppendToken, History, SessionId, SqliteStore};
use epitome::message::Message;
use futures::executor::block_on;

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("sessions.db");
    block_on(async {
        let store = Arc::new(SqliteStore::open(&path)?);
        let mut history =
            History::open(store, SessionId::new("demo"), Arc::new(ClassEstimator::new())).await?;
        for turn in 0..20 {
            let question = Message::user(format!("What does step {turn} of the build do?"));
            let answer = Message::assistant(format!("Step {turn} compiles one more crate and links it."));
            history.append(&AppendToken::new(format!("turn-{turn}")), vec![question, answer]).await?;
        }
        let before = history.index().tokens();

        let budget = Budget::builder().window(1_000).trigger(300).goal(200).build()?;
        let record = history.compact(&budget, Pass::Proactive, &Truncation::new()).await?;
        let record = record.ok_or("the budget asks for a compaction")?;
        println!("{before} tokens are now {}; {} are hidden", record.tokens_after, record.hides.len());
        drop(history);

        // Another process, later.
        let store = Arc::new(SqliteStore::open(&path)?);
        let history = History::open(store, SessionId::new("demo"), Arc::new(ClassEstimator::new())).await?;
        assert_eq!((history.index().tokens(), history.revision()), (record.tokens_after, Revision(1)));
        println!("loaded again: {} messages of {}", history.index().messages(), history.head());
        Ok(())
    })
}
