//! Results of hosted tools in the message of their calls: their tools, and whether they may be shortened.

use super::part::{PartKind, PartSpan};
use super::push::IndexBuf;
use super::{Span, ToolName};
use crate::message::{CallKind, MessageView, PartView, ToolCallView, ToolResultView};
use crate::open_calls::OpenCalls;
use crate::table::Table;

impl<S: Table<Span>, C: OpenCalls, P: Table<PartSpan>> IndexBuf<S, C, P> {
    /// Sets the tools of the results in a message of the model, whose rows begin at `from`, and removes the rows of
    /// results that stay whole.
    #[cold]
    pub(super) fn name_hosted<M: MessageView + ?Sized>(&mut self, message: &M, from: usize) {
        let rows = self.parts.as_mut_slice().get_mut(from..).unwrap_or_default();
        let (mut calls, mut ordinal, mut next, mut kept) = (HostedCalls::NONE, 0_u32, 0_usize, 0_usize);
        message.for_each_part(&mut |part| {
            let tool = match part {
                PartView::ToolCall(call) if call.kind == CallKind::Hosted => {
                    calls.note(&call);
                    None
                }
                PartView::ToolResult(result) => calls.tool_of(&result),
                _ => None,
            };
            if let Some(mut row) = rows.get(next).copied().filter(|row| row.ordinal() == ordinal) {
                next = next.saturating_add(1);
                row.set_tool(tool.map_or(0, ToolName::bits));
                if let Some(place) =
                    rows.get_mut(kept).filter(|_| row.kind() != PartKind::ToolResult || tool.is_some())
                {
                    *place = row;
                    kept = kept.saturating_add(1);
                }
            }
            ordinal = ordinal.saturating_add(1);
        });
        self.parts.truncate(from.saturating_add(kept));
    }
}

/// The latest hosted calls of one message, each as a digest of its id, and its tool.
///
/// A digest is enough: it decides only the tool of a result, and tools are compared by a digest as well.
#[derive(Debug, Clone, Copy)]
struct HostedCalls {
    latest: [Option<(u32, ToolName)>; CALLS_MAX],
    count: usize,
}

/// Number of the latest calls that are remembered until their results come: hosted tools are called one by one, or a
/// few at a time. The result of an earlier call stays whole.
const CALLS_MAX: usize = 8;

impl HostedCalls {
    const NONE: Self = Self { latest: [None; CALLS_MAX], count: 0 };

    fn note(&mut self, call: &ToolCallView<'_>) {
        if let Some(place) = self.latest.get_mut(self.count % CALLS_MAX) {
            *place = Some((digest(call.id), ToolName::new(call.name)));
        }
        self.count = self.count.wrapping_add(1);
    }

    /// The tool of a result that may be shortened, if its call is remembered.
    fn tool_of(&self, result: &ToolResultView<'_>) -> Option<ToolName> {
        let call = digest(result.call_id);
        let (_, tool) = self.latest.iter().flatten().find(|(id, _)| *id == call)?;
        Some(*tool).filter(|_| is_readable(result))
    }
}

/// Whether a result consists of texts and media alone. Other content, such as an encrypted page, goes back to the
/// provider unchanged, or not at all.
fn is_readable(result: &ToolResultView<'_>) -> bool {
    let mut readable = true;
    result.content.for_each_part(&mut |part| {
        readable &= matches!(part, PartView::Text(_) | PartView::Media(_));
    });
    readable
}

/// FNV-1a.
fn digest(id: &str) -> u32 {
    id.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
