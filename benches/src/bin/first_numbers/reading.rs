//! Measures the reading of Chat Completions JSON.

use core::error::Error;

use epitome::core::message::MessageView;
use epitome::core::{IndexBuf, OpenCallTree, Span};
use epitome::wire::document;
use epitome::wire::openai_chat::ChatView;
use epitome_benches::compare::clock::grouped;
use epitome_benches::generated::{Message, Messages, Pool, sizes as sizes_of, write_json};

use crate::table::{Table, mb_per_second, median, ms, ratio};
use crate::{SEED, Sizes};

pub(crate) fn run(history: &[Message<'_>], sizes: &Sizes, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let mut text = Vec::new();
    write_json(Messages::new(&Pool::new(), SEED).take(history.len()), &mut text)?;
    let text = String::from_utf8(text)?;
    let read = || {
        let conversation = document::conversation(&text).unwrap();
        let messages = conversation.iter().map(|message| ChatView::parse(message).unwrap());
        messages.collect::<Vec<_>>()
    };
    let views = read();
    let tokens = sizes_of(history);
    assert_eq!(sizes_of_views(&views), tokens, "what is read has the sizes of what was written");
    let any = || serde_json::from_str::<serde_json::Value>(&text).unwrap();
    assert_eq!(any().as_array().map(Vec::len), Some(views.len()));
    let rounds = sizes.rounds.min(5);
    let (reading, valuing) = (median(rounds, read), median(rounds, any));
    let finding = median(rounds, || document::conversation(&text).unwrap().len());
    let (fast, slow) = (mb_per_second(text.len(), reading), mb_per_second(text.len(), valuing));
    table.row(
        &format!("parse {:.1} MB of Chat Completions", text.len() as f64 / 1e6),
        &format!(
            "{fast:.0} MB/s ({:.0} % of the time to find the messages); serde_json::Value: {slow:.0} MB/s; {:.2}x",
            100.0 * ratio(finding, reading),
            fast / slow
        ),
        Some((">= 0.5x", 2.0 * fast >= slow)),
        "shows views of all messages against a tree of values, from the same text; matters because reading is most \
         of what a command-line compaction does",
    );
    let grouping = median(sizes.rounds, || {
        let mut index = IndexBuf::<Vec<Span>, OpenCallTree>::new();
        for (view, tokens) in views.iter().zip(&tokens) {
            index.push(view, *tokens).unwrap();
        }
        index
    });
    table.row(
        &format!("group {} parsed messages", grouped(views.len())),
        &ms(grouping),
        None,
        "shows grouping over views of JSON instead of owned messages; matters because it says what a view costs",
    );
    Ok(())
}

fn sizes_of_views(views: &[impl MessageView]) -> Vec<epitome::core::Tokens> {
    let estimator = epitome::core::ClassEstimator::new();
    views.iter().map(|view| epitome::core::count_message(view, &estimator)).collect()
}
