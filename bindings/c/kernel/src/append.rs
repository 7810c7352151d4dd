//! Appends messages: texts, tool calls and tool results.

use epitome_core::attribution::{AttributionView, Retention};
use epitome_core::message::{
    MessageView, PartView, Parts, Role, Text as Content, ToolCallView, ToolResultView,
};
use epitome_core::{ClassEstimator, OPEN_CALLS_MAX, Placed as PlacedInIndex};

use crate::call::{Call, Plain, Text};
use crate::error::{Error, code};
use crate::history::History;

/// A call of a tool.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ToolCall {
    id: Text,
    name: Text,
    arguments: Text,
}

/// A message to append. Fields that are zero are absent.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Entry {
    role: i32,
    retention: i32,
    text: Text,
    name: Text,
    calls: *const ToolCall,
    call_count: usize,
    call_id: Text,
    is_error: u32,
}

/// The place of an appended message.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Placed {
    anchor: u64,
    turn: u32,
    outcome: i32,
}

/// Role of a message. Zero is none, so that an entry without a role is an error.
#[repr(i32)]
#[derive(Clone, Copy)]
pub enum RoleCode {
    System = 1,
    Developer = 2,
    User = 3,
    Assistant = 4,
    Tool = 5,
}

/// The retention of a message.
#[repr(i32)]
pub enum RetentionCode {
    Normal = 0,
    Pinned = 1,
    Ephemeral = 2,
}

/// The outcome of an append.
#[repr(i32)]
#[derive(Clone, Copy)]
pub enum Outcome {
    Stored = 1,
    Late = 2,
    Orphan = 3,
    Hidden = 4,
}

// SAFETY: pointers and numbers.
unsafe impl Plain for ToolCall {}
// SAFETY: pointers and numbers.
unsafe impl Plain for Entry {}
// SAFETY: numbers.
unsafe impl Plain for Placed {}

/// Appends a message.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_append(
    history: *mut History,
    entry: *const Entry,
    placed: *mut Placed,
) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    code(append(unsafe { Call::new(history) }, entry, None, placed))
}

/// Appends a message in at most so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_append_clamped(
    history: *mut History,
    entry: *const Entry,
    bytes_max: usize,
    placed: *mut Placed,
) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    code(append(unsafe { Call::new(history) }, entry, Some(bytes_max), placed))
}

fn append(
    mut call: Call<'_>,
    entry: *const Entry,
    bytes_max: Option<usize>,
    placed: *mut Placed,
) -> Result<(), Error> {
    let to = call.out(placed)?;
    let mut calls = [ToolCallView::new("", "", ""); OPEN_CALLS_MAX];
    let message = Message::read(&call, entry, &mut calls)?;
    let history = call.change()?;
    let done = match bytes_max {
        None => history.push(&message, &ClassEstimator::new()),
        Some(bytes_max) => history.push_clamped(&message, bytes_max, &ClassEstimator::new()),
    };
    to.put(done?.into());
    Ok(())
}

impl From<PlacedInIndex> for Placed {
    fn from(placed: PlacedInIndex) -> Self {
        let outcome = match placed {
            PlacedInIndex { orphan: true, .. } => Outcome::Orphan,
            PlacedInIndex { hidden: true, .. } => Outcome::Hidden,
            PlacedInIndex { late: true, .. } => Outcome::Late,
            _ => Outcome::Stored,
        };
        Self { anchor: placed.anchor.0, turn: placed.turn.0, outcome: outcome as i32 }
    }
}

/// A message whose texts have been checked.
struct Message<'m> {
    role: Role,
    retention: Retention,
    text: &'m str,
    name: Option<&'m str>,
    calls: &'m [ToolCallView<'m>],
    call_id: &'m str,
    is_error: bool,
}

impl<'m> Message<'m> {
    fn read(
        call: &Call<'m>,
        entry: *const Entry,
        calls: &'m mut [ToolCallView<'m>; OPEN_CALLS_MAX],
    ) -> Result<Self, Error> {
        let entry = call.value(entry)?;
        let role = role(entry.role)?;
        let call_id = call.text(entry.call_id)?;
        let has_calls = !entry.calls.is_null() || entry.call_count > 0;
        if (has_calls && role != Role::Assistant) || call_id.is_some() != (role == Role::Tool) {
            return Err(Error::Entry);
        }
        // No history has space for more calls of one message.
        let calls = calls.get_mut(..entry.call_count).ok_or(Error::Full)?;
        for (at, to) in calls.iter_mut().enumerate() {
            let one = call.value(entry.calls.wrapping_add(at))?;
            let text = |text| call.text(text).map(Option::unwrap_or_default);
            *to = ToolCallView::new(text(one.id)?, text(one.name)?, text(one.arguments)?);
        }
        Ok(Self {
            role,
            retention: retention(entry.retention)?,
            text: call.text(entry.text)?.unwrap_or_default(),
            name: call.text(entry.name)?,
            calls,
            call_id: call_id.unwrap_or_default(),
            is_error: entry.is_error != 0,
        })
    }
}

impl Parts for Message<'_> {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        if self.role == Role::Tool {
            let content = Content(self.text);
            let result = ToolResultView::new(self.call_id, &content).with_error(self.is_error);
            visit(PartView::ToolResult(result));
        } else if !self.text.is_empty() {
            visit(PartView::Text(self.text));
        }
        for call in self.calls {
            visit(PartView::ToolCall(*call));
        }
    }
}

impl MessageView for Message<'_> {
    fn role(&self) -> Role {
        self.role
    }

    fn attribution(&self) -> AttributionView<'_> {
        let mut attribution = AttributionView::caller(self.role.authority());
        attribution.retention = self.retention;
        attribution
    }

    fn name(&self) -> Option<&str> {
        self.name
    }
}

/// Converts a number of the header to a role.
pub(crate) fn role(code: i32) -> Result<Role, Error> {
    const SYSTEM: i32 = RoleCode::System as i32;
    const DEVELOPER: i32 = RoleCode::Developer as i32;
    const USER: i32 = RoleCode::User as i32;
    const ASSISTANT: i32 = RoleCode::Assistant as i32;
    const TOOL: i32 = RoleCode::Tool as i32;
    match code {
        SYSTEM => Ok(Role::System),
        DEVELOPER => Ok(Role::Developer),
        USER => Ok(Role::User),
        ASSISTANT => Ok(Role::Assistant),
        TOOL => Ok(Role::Tool),
        _ => Err(Error::Value),
    }
}

/// Converts a role to its number in the header.
pub(crate) fn role_code(role: Role) -> i32 {
    let code = match role {
        Role::System => RoleCode::System,
        Role::Developer => RoleCode::Developer,
        Role::User => RoleCode::User,
        Role::Tool => RoleCode::Tool,
        _ => RoleCode::Assistant,
    };
    code as i32
}

fn retention(code: i32) -> Result<Retention, Error> {
    const NORMAL: i32 = RetentionCode::Normal as i32;
    const PINNED: i32 = RetentionCode::Pinned as i32;
    const EPHEMERAL: i32 = RetentionCode::Ephemeral as i32;
    match code {
        NORMAL => Ok(Retention::Normal),
        PINNED => Ok(Retention::Pinned),
        EPHEMERAL => Ok(Retention::Ephemeral),
        _ => Err(Error::Value),
    }
}
