//! Responses to requests for a compaction.

use std::format;
use std::string::String;
use std::vec::Vec;

use epitome_core::message::Role;
use epitome_core::{Tokens, Usage};
use epitome_std::message::{CompactionPart, Message, Part};
use epitome_std::wire::document::{ElementFields, elements_and_fields, fields};
use epitome_std::wire::{Format, ReadOptions, WireError, read, usage};

use super::super::value::{self, optional_text, present};
use super::super::{Artefact, ServiceError, ServiceErrorKind, ServiceRequest};
use super::ResponsesVendor;
use super::users::{self, Said};

/// Reads the response of `POST /responses/compact` to `request`.
///
/// `model` is the model of the conversation, which may differ from the compacting one; empty for any model.
/// Messages of the user before `request.replaced_from` stay in their place, and are therefore not repeated before
/// the item.
///
/// # Errors
/// `Malformed` if the response differs from the service's documentation: messages of the user, and then exactly one
/// compaction item. The error contains the usage of the request.
pub fn compacted(
    vendor: &ResponsesVendor,
    model: &str,
    request: &ServiceRequest<'_>,
    answer: &str,
) -> Result<Artefact, ServiceError> {
    let mut answer = Answer::read(vendor, model, answer, COMPACTION)?;
    let said = answer.only_said()?;
    let kept = request.messages.get(..request.replaced_from).unwrap_or_default();
    let mut kept = users::said(kept.iter().copied()).into_iter().filter_map(|said| said.words()).peekable();
    // The messages that stay come first, in the same order.
    let moved =
        said.into_iter().filter(|said| kept.next_if(|kept| said.words().as_ref() == Some(kept)).is_none());
    answer.artefact(moved.collect())
}

/// Reads the compaction of messages up to a response that the service has stored. A conversation begins with it.
///
/// # Errors
/// As [`compacted`].
pub fn compacted_previous(
    vendor: &ResponsesVendor,
    model: &str,
    answer: &str,
) -> Result<Artefact, ServiceError> {
    let mut answer = Answer::read(vendor, model, answer, COMPACTION)?;
    let said = answer.only_said()?;
    answer.artefact(said)
}

/// Reads the response to a request with `compaction_trigger`. The service returns the item alone. The replaced
/// messages of the user are added before it: the newest of them, at most 64,000 tokens.
///
/// # Errors
/// `Malformed` if the response is incomplete, or does not contain exactly one compaction item. The error contains
/// the usage of the request.
pub fn triggered(
    vendor: &ResponsesVendor,
    model: &str,
    request: &ServiceRequest<'_>,
    answer: &str,
) -> Result<Artefact, ServiceError> {
    let answer = Answer::read(vendor, model, answer, RESPONSE)?;
    let said = match vendor.returns_users {
        true => users::newest(users::said(request.replaced().iter().copied())),
        false => Vec::new(),
    };
    answer.artefact(said)
}

const COMPACTION: &str = "response.compaction";
const RESPONSE: &str = "response";

/// The parts of a response that are needed.
struct Answer<'a> {
    vendor: &'a ResponsesVendor,
    model: &'a str,
    /// Messages of the user in the response.
    said: Vec<Said>,
    compactions: Vec<CompactionPart>,
    /// Whether the response has no other items, and nothing behind a compaction.
    is_alone: bool,
    usage: Option<Usage>,
}

/// Number of bytes of a response that are parsed at a time: only the needed part is held in memory.
const READ_BYTES: usize = 4 * 1024;

impl<'a> Answer<'a> {
    fn read(
        vendor: &'a ResponsesVendor,
        model: &'a str,
        text: &str,
        object: &str,
    ) -> Result<Self, ServiceError> {
        let mut answer =
            Self { vendor, model, said: Vec::new(), compactions: Vec::new(), is_alone: true, usage: None };
        let [own, status, usage, output] = match fields(text, &["object", "status", "usage", "output"]) {
            Ok(found) => found,
            Err(error) => {
                // The service charged for it all the same.
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
        let items: Vec<ElementFields<'_, 0>> = elements_and_fields(output.unwrap_or_default(), &[])
            .map_err(|error| answer.malformed("no items").with_source(error))?;
        let mut items = items.into_iter().map(|(item, _)| item).peekable();
        while items.peek().is_some() {
            let mut some = String::from("[");
            while let Some(item) = items.next_if(|_| some.len() < READ_BYTES) {
                some.extend([if some.len() == 1 { "" } else { "," }, item]);
            }
            some.push(']');
            if let Err(error) = answer.look_at(some) {
                // The whole response is read again for the position of the error in it.
                let error = read(text, &options()).err().unwrap_or(error);
                return Err(answer.malformed("no items").with_source(error));
            }
        }
        Ok(answer)
    }

    /// Reads the needed content of these items.
    fn look_at(&mut self, items: String) -> Result<(), WireError> {
        let read = read(items, &options())?;
        let messages = || read.conversations().iter().flat_map(|it| it.messages());
        for message in messages() {
            match compaction(message) {
                Some(left) => self.compactions.push(left.clone()),
                None => self.is_alone &= message.role() == Role::User && self.compactions.is_empty(),
            }
        }
        self.said.extend(users::said(messages()));
        Ok(())
    }

    /// Messages of the user. An error if any other item is before the compaction, or any item is behind it.
    fn only_said(&mut self) -> Result<Vec<Said>, ServiceError> {
        match self.is_alone {
            true => Ok(core::mem::take(&mut self.said)),
            false => {
                Err(self.malformed("it holds more than messages of the user, and the compaction behind them"))
            }
        }
    }

    /// The only compaction of the response, behind the messages of the user.
    fn artefact(self, said: Vec<Said>) -> Result<Artefact, ServiceError> {
        let [found] = &*self.compactions else {
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

fn options() -> ReadOptions {
    ReadOptions::default().with_from(Format::OpenaiResponses)
}

/// The compaction in an item.
fn compaction(item: &Message) -> Option<&CompactionPart> {
    match item.parts() {
        [Part::Compaction(left)] => Some(left),
        _ => None,
    }
}
