//! `epitome handoff`: a document for a new session that continues this one.

use epitome::core::Tokens;
use epitome::message::Message;

use crate::args::HandoffArgs;
use crate::failure::{ExitCode, Failure, Result};
use crate::output::{Draft, Output};
use crate::redact::Redactor;
use crate::scan::ESTIMATE;
use crate::transcript::Input;
use crate::visible::lines;
use crate::{model, summarizer};

use super::convert::messages;

pub(crate) fn run(args: &HandoffArgs) -> Result<ExitCode> {
    if args.input.part.each {
        return Err(Failure::input("--each: a handoff is of one conversation: name it with --at"));
    }
    let output = Output { path: &args.output, force: args.force };
    output.check()?;
    let found = model::find(&args.model)?;
    let counter = model::counter(found.as_ref(), args.tokenizer.as_deref(), ESTIMATE)?;
    let summarizer = summarizer::open(&args.summary, args.model.model.as_deref())?;
    let input = Input::open(&args.input)?;
    input.check_replaced(&args.output)?;
    let mut conversation = input.conversation(&args.input)?;
    conversation.mention_others();
    let mut said = messages(&mut conversation, &input)?;
    let mut redactor = Redactor::new(&args.redact)?;
    if let Some(redactor) = &mut redactor {
        said = said.into_iter().map(|message| redactor.message(message)).collect();
    }
    let said: Vec<&Message> = said.iter().collect();
    let tokens_max = Tokens(u32::try_from(args.tokens).unwrap_or(u32::MAX));
    let document = summarizer::handoff(&said, summarizer.as_ref(), &*counter, tokens_max)?;
    // People may read the document on a terminal, even if it is written to a file.
    let document = lines(&document);
    let draft = Draft::private(output)?.filled(|out| out.write_all(document.as_bytes()))?;
    draft.publish()?;
    if let Some(redactor) = &redactor {
        redactor.found().tell();
    }
    Ok(ExitCode::SUCCESS)
}
