//! Checks of the invariants that hold after each turn.

use epitome_compactors::CLEARED;
use epitome_core::message::{MessageView, PartView, Role};
use epitome_core::{ClassEstimator, OpenCallSlots, Profile, Validator};

use crate::agent::{Agent, Done, SYSTEM, counted, request};

pub fn all(agent: &Agent<'_>, turn: u32) -> Done {
    is_legal(agent)?;
    is_counted(agent)?;
    elides_only_old_results(agent)?;
    keeps_what_must_stay(agent, turn)
}

/// Every call has exactly one result directly after it, and every result has its call.
#[inline(never)]
fn is_legal(agent: &Agent<'_>) -> Done {
    let mut violations = 0;
    let mut validator = Validator::<OpenCallSlots<CALLS_MAX>>::new(Profile::OpenaiChat);
    for message in agent.history.messages() {
        validator.push(&message, &mut |_| violations += 1).map_err(|_| "too many calls at once")?;
    }
    validator.finish(&mut |_| violations += 1);
    if violations == 0 { Ok(()) } else { Err("the request is not legal") }
}

/// The recorded total is the sum of the messages, each message has the size of a fresh count, and the request fits the
/// limit.
#[inline(never)]
fn is_counted(agent: &Agent<'_>) -> Done {
    let (mut sum, mut messages) = (0, 0);
    for message in agent.history.messages() {
        if !counted(&message, &ClassEstimator::new(), message.tokens().0) {
            return Err("a message has another size than it says");
        }
        sum += u64::from(message.tokens().0);
        messages += 1;
    }
    if sum != agent.history.tokens() || messages != agent.history.len() {
        return Err("the sum is not that of the messages");
    }
    if agent.history.index().groups().map(|group| group.tokens().as_u64()).sum::<u64>() != sum {
        return Err("the groups are not the messages");
    }
    if sum > agent.budget().limit() { Err("the request does not fit") } else { Ok(()) }
}

/// An elided result has a note that the model sees; the newest results are whole.
#[inline(never)]
fn elides_only_old_results(agent: &Agent<'_>) -> Done {
    let results = || agent.history.messages().filter(|message| message.role() == Role::Tool);
    let old = results().count().saturating_sub(RESULTS_KEPT);
    for (at, message) in results().enumerate() {
        if message.is_elided() && (at >= old || !returns(&message, CLEARED)) {
            return Err("a result was elided that should be whole, or without a note");
        }
    }
    Ok(())
}

/// Instructions, first request and last request are unchanged; the messages are in ascending order.
#[inline(never)]
fn keeps_what_must_stay(agent: &Agent<'_>, turn: u32) -> Done {
    let mut messages = agent.history.messages();
    if !messages.next().is_some_and(|message| says(&message, Role::System, SYSTEM)) {
        return Err("the instructions are gone");
    }
    if !messages.next().is_some_and(|message| says(&message, Role::User, &request(0))) {
        return Err("the task is gone");
    }
    let users = agent.history.messages().filter(|message| message.role() == Role::User);
    if !users.last().is_some_and(|message| says(&message, Role::User, &request(turn))) {
        return Err("the request is gone");
    }
    if agent.history.messages().is_sorted_by_key(|message| message.seq()) {
        Ok(())
    } else {
        Err("the order has changed")
    }
}

fn returns(message: &impl MessageView, text: &str) -> bool {
    let mut same = false;
    message.for_each_part(&mut |part| {
        if let PartView::ToolResult(result) = part {
            result.content.for_each_part(&mut |part| {
                same = matches!(part, PartView::Text(said) if said == text);
            });
        }
    });
    same
}

fn says(message: &impl MessageView, role: Role, text: &str) -> bool {
    let mut same = false;
    message.for_each_part(&mut |part| same = matches!(part, PartView::Text(said) if said == text));
    same && message.role() == role
}

/// Maximum number of open calls. The agent makes two calls in a step; a validator keeps a few sets of slots of this
/// size on the stack.
const CALLS_MAX: usize = 4;
/// Default number of results that the clearing strategy keeps.
const RESULTS_KEPT: usize = 3;
