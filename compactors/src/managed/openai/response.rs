//! What comes back.

use std::format;
use std::vec::Vec;

use epitome_core::message::Role;
use epitome_core::{Tokens, Usage};
use epitome_std::message::{CompactionPart, Message, Part};
use epitome_std::wire::document::fields;
use epitome_std::wire::{Entry, Format, ReadOptions, read, usage};

use super::super::value::{self, optional_text, present};
use super::super::{Artefact, ServiceError, ServiceErrorKind, ServiceRequest};
use super::ResponsesVendor;
use super::users::{self, Said};

/// What `POST /responses/compact` has left of `request`, for the conversation's `model`, which may be another than the one that
/// compacted; empty for any. What the user said before `request.replaced_from` stays where it
/// is, and so is not before the item.
///
/// # Errors
/// `Malformed` if the answer is not what the service documents: messages of the user, and then exactly one compaction item.
/// The error tells what it has cost.
pub fn compacted(
    vendor: &ResponsesVendor,
    model: &str,
    request: &ServiceRequest<'_>,
    answer: &str,
) -> Result<Artefact, ServiceError> {
    let answer = Answer::read(vendor, model, answer, COMPACTION)?;
    let said = answer.said()?;
    let kept = request.messages.get(..request.replaced_from).unwrap_or_default();
    let mut kept = users::said(kept).into_iter().peekable();
    // What stays is said first, and in the same order.
    let moved = said.into_iter().filter(|said| kept.next_if(|kept| kept.is_like(said)).is_none());
    answer.artefact(moved.collect())
}

/// The same of what stands behind a response that the service keeps: a conversation begins with it.
///
/// # Errors
/// As [`compacted`].
pub fn compacted_previous(
    vendor: &ResponsesVendor,
    model: &str,
    answer: &str,
) -> Result<Artefact, ServiceError> {
    let answer = Answer::read(vendor, model, answer, COMPACTION)?;
    let said = answer.said()?;
    answer.artefact(said)
}

/// What a request with `compaction_trigger` has left. The service returns the item alone; before it stands what the user
/// said in what is replaced: the newest of it, 64,000 tokens at most.
///
/// # Errors
/// `Malformed` if the answer is incomplete, or does not hold exactly one compaction item. The error tells what it has cost.
pub fn triggered(
    vendor: &ResponsesVendor,
    model: &str,
    request: &ServiceRequest<'_>,
    answer: &str,
) -> Result<Artefact, ServiceError> {
    let answer = Answer::read(vendor, model, answer, RESPONSE)?;
    let said = match vendor.returns_users {
        true => users::newest(users::said(request.replaced())),
        false => Vec::new(),
    };
    answer.artefact(said)
}

const COMPACTION: &str = "response.compaction";
const RESPONSE: &str = "response";

/// An answer, as far as it is looked at.
struct Answer<'a> {
    vendor: &'a ResponsesVendor,
    model: &'a str,
    items: Vec<Message>,
    usage: Option<Usage>,
}

impl<'a> Answer<'a> {
    fn read(
        vendor: &'a ResponsesVendor,
        model: &'a str,
        text: &str,
        object: &str,
    ) -> Result<Self, ServiceError> {
        let mut answer = Self { vendor, model, items: Vec::new(), usage: None };
        let [own, status, usage] = match fields(text, &["object", "status", "usage"]) {
            Ok(found) => found,
            Err(error) => {
                // It has been paid for all the same.
                answer.usage = usage::reported(text).ok().flatten();
                return Err(answer.malformed("no object of the API").with_source(error));
            }
        };
        answer.usage = present(usage).and_then(|report| usage::of(report).ok());
        let (Some(own), Ok(status)) = (own.and_then(value::text), optional_text(status)) else {
            return Err(answer.malformed("no object of the API"));
        };
        if own != object {
            return Err(answer.malformed("the object is another one"));
        }
        if status.is_some_and(|status| status != "completed") {
            return Err(answer.malformed("it was not completed"));
        }
        let options = ReadOptions::default().with_from(Format::OpenaiResponses);
        let mut read =
            read(text, &options).map_err(|error| answer.malformed("no items").with_source(error))?;
        let conversations = read.conversations_mut().iter_mut();
        let entries = conversations.flat_map(|conversation| core::mem::take(&mut conversation.entries));
        answer.items = entries.map(Entry::into_message).collect();
        Ok(answer)
    }

    /// What the user said, where nothing but that stands before the item.
    fn said(&self) -> Result<Vec<Said>, ServiceError> {
        let said = match self.items.split_last() {
            Some((last, said)) if compaction(last).is_some() => said,
            _ => return Err(self.malformed("the last item is no compaction")),
        };
        match said.iter().all(|message| message.role() == Role::User) {
            true => Ok(users::said(said)),
            false => Err(self.malformed("before the compaction stands more than messages of the user")),
        }
    }

    /// The one compaction in it, behind what the user said.
    fn artefact(self, said: Vec<Said>) -> Result<Artefact, ServiceError> {
        let mut found = self.items.iter().filter_map(compaction);
        let (Some(found), None) = (found.next(), found.next()) else {
            return Err(self.malformed("expected exactly one compaction item"));
        };
        let sealed = found.opaque.clone().filter(|sealed| !sealed.is_empty());
        let Some(sealed) = sealed else { return Err(self.malformed("the compaction item is empty")) };
        let part = CompactionPart::new(self.vendor.provider(), "", Some(sealed.as_str().into()))
            .with_model(self.model);
        let written = self.usage.and_then(|usage| usage.output_total);
        let part = part.with_tokens(written.map(|tokens| Tokens(u32::try_from(tokens).unwrap_or(u32::MAX))));
        let before = said.into_iter().map(Said::into_part).collect();
        Ok(Artefact::new(part).behind(before).with_usage(self.usage))
    }

    fn malformed(&self, what: &str) -> ServiceError {
        let context = format!("{}: {what}", self.vendor.provider());
        ServiceError::new(ServiceErrorKind::Malformed, context).with_usage(self.usage)
    }
}

/// The compaction that an item is.
fn compaction(item: &Message) -> Option<&CompactionPart> {
    match item.parts() {
        [Part::Compaction(left)] => Some(left),
        _ => None,
    }
}
