//! Surroundings of a conversation's messages in a file: the tools of its request, and its usage report.

use epitome::core::{Amount, TokenCounter, Tokens, Usage};
use epitome::models::measure_tools;
use epitome::wire::document::{Document, Pointer};
use epitome::wire::usage::reported;

use crate::failure::{Failure, Result};
use crate::transcript::Transcript;

/// A request, without its messages.
#[derive(Debug, Default)]
pub(crate) struct Request {
    /// `tools`, as in the file.
    tools: Option<String>,
    /// Usage of the request as reported by the provider.
    pub(crate) usage: Option<Usage>,
}

impl Request {
    /// Reads the objects around the messages: `tools` of the innermost one, and the nearest `usage`, beside the
    /// messages or in the `response` to them.
    pub(crate) fn around(transcript: &Transcript<'_>) -> Result<Self> {
        let Transcript::Memory { path, conversation } = transcript else { return Ok(Self::default()) };
        let wire = |error| Failure::wire(path, &error);
        let document = Document::parse(conversation.whole()).map_err(wire)?;
        let mut request = Self::default();
        let mut place = conversation.path().as_str();
        while let Some((above, _)) = place.rsplit_once('/') {
            let object = Pointer::parse(above).and_then(|pointer| document.at(&pointer)).map_err(wire)?;
            if request.tools.is_none() {
                request.tools = object
                    .at(&Pointer::parse("/tools").map_err(wire)?)
                    .ok()
                    .map(|tools| tools.text().to_owned());
            }
            let response = Pointer::parse("/response").and_then(|pointer| object.at(&pointer)).ok();
            for text in [Some(object.text()), response.map(|response| response.text())].into_iter().flatten()
            {
                let report = || reported(text).ok()?.filter(|usage| usage.input_total.is_some());
                request.usage = request.usage.or_else(report);
            }
            place = above;
        }
        Ok(request)
    }

    /// Size of the request without its messages.
    pub(crate) fn overhead(&self, counter: &dyn TokenCounter) -> Result<Amount> {
        let framing = counter.framing();
        let tools = match self.tools.as_deref().filter(|tools| *tools != "null") {
            Some(tools) => {
                measure_tools(tools, counter).map_err(|error| Failure::input(format!("`tools`: {error}")))?
            }
            None => Amount::new(Tokens::ZERO, counter.basis()),
        };
        let basis = tools.basis.min(framing.basis);
        Ok(Amount::new(tools.tokens.saturating_add(Tokens(framing.request)), basis))
    }
}
