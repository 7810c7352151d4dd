//! Order of instructions, and pairing of each call with one result.

use alloc::vec::Vec;

use super::{Repair, Request};
use crate::profile::{Instructions, Neighbours, Results};
use crate::shape::Kind;

/// All messages except orphans, in order: instructions first where the rules require it, results next to their calls
/// where the rules require it, and an invented result for each call without one.
pub(super) fn pair(request: &Request<'_>) -> Vec<Repair> {
    let mut pairing = Pairing { request, run: Vec::new(), out: instructions(request) };
    for (position, kind) in request.paired() {
        pairing.push(position, kind);
    }
    pairing.end_run();
    pairing.out
}

/// The instructions that are sent apart.
fn instructions(request: &Request<'_>) -> Vec<Repair> {
    let mut out = Vec::with_capacity(request.rows.len());
    for (position, _) in request.paired().filter(|(_, kind)| request.is_apart(*kind)) {
        out.push(match request.rules.instructions {
            Instructions::OneLeading if !out.is_empty() => Repair::Merge { position },
            _ => Repair::Keep(position),
        });
    }
    out
}

#[derive(Debug)]
struct Pairing<'a> {
    request: &'a Request<'a>,
    /// The latest messages of the model that are one turn.
    run: Vec<u32>,
    out: Vec<Repair>,
}

impl Pairing<'_> {
    fn push(&mut self, position: u32, kind: Kind) {
        match kind {
            Kind::Instruction if self.request.is_apart(kind) => {}
            Kind::Says | Kind::Calls => {
                if self.request.rules.neighbours != Neighbours::Joined {
                    self.end_run();
                }
                self.run.push(position);
            }
            Kind::Instruction | Kind::User => {
                self.end_run();
                self.out.push(Repair::Keep(position));
            }
            Kind::Result => {
                self.end_run();
                if self.request.rules.results == Results::Later {
                    self.out.push(Repair::Keep(position));
                }
            }
        }
    }

    /// Writes a turn of the model, its results if they must be next to it, and the invented results.
    fn end_run(&mut self) {
        let Self { request, run, out } = self;
        out.extend(run.iter().map(|position| Repair::Keep(*position)));
        if request.rules.results == Results::Next {
            let of_call = |position| request.results.get(position).into_iter().flatten().copied();
            let mut results: Vec<u32> = run.iter().flat_map(of_call).collect();
            results.sort_unstable();
            out.extend(results.into_iter().map(Repair::Keep));
        }
        for position in run.iter() {
            out.extend(request.invented.get(position).into_iter().flatten());
        }
        run.clear();
    }
}
