//! Writes compacted transcripts to a file.

use std::io::Write;
use std::path::Path;

use epitome::core::Profile;
use epitome::wire::document::Piece;

use super::Compacted;
use super::piece::{self, OwnedPiece, message_of};
use crate::args::CompactArgs;
use crate::commands::convert::Conversions;
use crate::failure::Result;
use crate::output::{Draft, Output};
use crate::redact::{Found, Redactor};
use crate::transcript::{Input, Transcript};
use crate::written::{Exactness, Expected, Said};

/// A written file that is read again before it is published.
pub(super) struct Written {
    draft: Draft,
    expected: Expected,
    told: Told,
}

/// Remarks about the written file.
enum Told {
    Nothing,
    Redacted(Found),
    Converted(Conversions),
}

impl Written {
    /// Writes the results of the conversations. Without `-o`, a result that its format may refuse is written to a draft
    /// without a destination, so that the report equals that of a run with `-o`.
    pub(super) fn new(
        args: &CompactArgs,
        input: &Input,
        transcripts: &mut [Transcript<'_>],
        done: &[Option<&Compacted>],
    ) -> Result<Option<Self>> {
        let draft = match args.output.as_deref().filter(|_| !args.dry_run) {
            Some(path) => Draft::new(Output { path, force: args.force })?,
            None if args.output.is_some() || args.to.is_some() || input.may_refuse() => Draft::nowhere()?,
            None => return Ok(None),
        };
        let pieces = done.iter().zip(&*transcripts).map(|(done, transcript)| {
            let pieces = done.and_then(|done| done.pieces.clone());
            pieces.unwrap_or_else(|| piece::all(transcript))
        });
        let pieces: Vec<_> = pieces.collect();
        match args.to {
            Some(to) => {
                let mut conversions = Conversions::new(to, &args.redact)?;
                for (transcript, pieces) in transcripts.iter_mut().zip(&pieces) {
                    let messages = pieces.iter().map(|piece| message_of(piece, transcript));
                    conversions.add(&messages.collect::<Result<Vec<_>>>()?)?;
                }
                let rules = rules_of(args, done);
                let expected = Expected { rules, ..conversions.expected()? };
                let draft = draft.filled(|out| conversions.write(out))?;
                Ok(Some(Self { draft, expected, told: Told::Converted(conversions) }))
            }
            None => Self::in_form(args, input, transcripts, draft, done, &pieces).map(Some),
        }
    }

    /// Writes the results in the form of the input.
    fn in_form<'d>(
        args: &CompactArgs,
        input: &Input,
        transcripts: &mut [Transcript<'_>],
        draft: Draft,
        done: &[Option<&'d Compacted>],
        pieces: &[Vec<OwnedPiece>],
    ) -> Result<Self> {
        let mut redactor = Redactor::new(&args.redact)?;
        let exactness = if redactor.is_some() { Exactness::Kinds } else { Exactness::Whole };
        let mut conversations = Vec::with_capacity(pieces.len());
        for (transcript, pieces) in transcripts.iter_mut().zip(pieces) {
            let mut said = Said::default();
            for piece in pieces {
                match piece {
                    OwnedPiece::Original(at) => {
                        transcript.with_message(*at, |message| said.push(message, exactness))?
                    }
                    other => said.push(&message_of(other, transcript)?, exactness),
                }
            }
            conversations.push(said);
        }
        let reader = input.args().clone();
        let expected = Expected { conversations, exactness, reader, rules: rules_of(args, done) };
        let said = |done: &Option<&'d Compacted>| -> Result<Option<Vec<Piece<'d>>>> {
            let pieces = done.and_then(|done| done.pieces.as_ref());
            pieces.map(|pieces| pieces.iter().map(OwnedPiece::as_piece).collect()).transpose()
        };
        let new = done.iter().map(said).collect::<Result<Vec<_>>>()?;
        let mut splice = |out: &mut dyn Write| {
            input.splice(transcripts, out, |at, transcript, out| match new.get(at) {
                Some(Some(pieces)) => transcript.write(pieces, out),
                _ => transcript.copy(out),
            })
        };
        let draft = draft.filled(|out| match &mut redactor {
            Some(redactor) => {
                let mut out = redactor.writer(out);
                splice(&mut out)?;
                out.finish().map(|_| ())
            }
            None => splice(out),
        })?;
        let told = redactor.map_or(Told::Nothing, |redactor| Told::Redacted(redactor.found().clone()));
        Ok(Self { draft, expected, told })
    }

    /// Reads the draft again, and publishes it.
    pub(super) fn publish(self, args: &CompactArgs) -> Result<()> {
        let path = args.output.as_deref().unwrap_or(Path::new("-"));
        self.expected.check(&self.draft, path)?;
        let is_told = args.json && matches!(self.told, Told::Converted(_));
        if is_told { self.draft.silent() } else { self.draft }.publish()?;
        match self.told {
            Told::Nothing => {}
            Told::Redacted(found) => found.tell(),
            Told::Converted(conversions) => conversions.tell(args.json),
        }
        Ok(())
    }
}

/// The profile of the repair of a single conversation, and the number of violations that it leaves.
fn rules_of(args: &CompactArgs, done: &[Option<&Compacted>]) -> Option<(Profile, u64)> {
    done.iter().flatten().find_map(|done| done.repaired).filter(|_| !args.input.part.each)
}
