//! Retrieval from a knowledge base: the service plans the queries, and answers with extracted texts and their sources.

use std::sync::{Arc, Mutex, PoisonError};

use epitome_http::{Endpoint, Repeat};
use epitome_std::memory::cut;
use epitome_std::session::{SessionError, SessionErrorKind};
use serde_json::{Value, json};

use crate::creation::{Creation, OF_INDEX};
use crate::provider::{API_VERSION, TEXT_BYTES_MAX, checked_name};

/// Maximum number of sources of a knowledge base, and of source addresses that an answer shows.
const SOURCES_MAX: usize = 20;

/// Maximum number of pieces of an answer that are shown.
const ENTRIES_MAX: usize = 50;

/// Fields for the address of a source. The first field that the source has is shown.
const PLACES: [&str; 5] = ["url", "blobUrl", "docUrl", "webUrl", "docKey"];

#[derive(Debug, Clone)]
pub(crate) struct KnowledgeBase {
    pub(crate) name: Box<str>,
    /// Maximum number of messages in a question: the latest of the input.
    pub(crate) messages_max: usize,
    /// Filter of the documents of its indexes.
    pub(crate) filter: Option<Box<str>>,
    /// Definition of the knowledge base, if the provider makes it.
    pub(crate) creation: Option<Creation>,
    /// Parameters for each source; `None` before the sources were looked up.
    pub(crate) sources: Arc<Mutex<Option<Vec<Value>>>>,
}

impl KnowledgeBase {
    pub(crate) fn new(name: Box<str>, messages_max: usize) -> Self {
        Self { name, messages_max, filter: None, creation: None, sources: Arc::default() }
    }

    pub(crate) async fn retrieve(
        &self,
        endpoint: &Endpoint,
        query: &str,
    ) -> Result<Vec<String>, SessionError> {
        let path = format!("/knowledgebases('{}')/retrieve?{API_VERSION}", self.name);
        let mut body = json!({"includeActivity": true, "intents": [{"type": "semantic", "search": query}]});
        let sources = self.sources(endpoint).await?;
        if let (false, Some(body)) = (sources.is_empty(), body.as_object_mut()) {
            body.insert("knowledgeSourceParams".to_owned(), sources.into());
        }
        let answer = endpoint.post(&path, &body, Repeat::Always).await?;
        let mut texts = texts(&answer);
        if !texts.is_empty() {
            texts.extend(places(&answer));
        }
        Ok(texts)
    }

    /// Returns the parameters for each source.
    async fn sources(&self, endpoint: &Endpoint) -> Result<Vec<Value>, SessionError> {
        let known = self.sources.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let sources = match &self.creation {
            Some(creation) => {
                creation.ensure(endpoint).await?;
                vec![self.asked_of(&creation.source(), Some(&OF_INDEX.into()))?]
            }
            None => self.listed_sources(endpoint).await?,
        };
        *self.sources.lock().unwrap_or_else(PoisonError::into_inner) = Some(sources.clone());
        Ok(sources)
    }

    /// Reads the sources from the definition of the knowledge base. A request must state the kind of each source.
    async fn listed_sources(&self, endpoint: &Endpoint) -> Result<Vec<Value>, SessionError> {
        let base = endpoint.get(&format!("/knowledgebases('{}')?{API_VERSION}", self.name)).await?;
        let (listed, mut sources) = (list(base.get("knowledgeSources")), Vec::new());
        for source in listed.iter().take(SOURCES_MAX) {
            let Some(name) = source.get("name").and_then(Value::as_str) else { continue };
            let name = checked_name(name)?;
            let source = endpoint.get(&format!("/knowledgesources('{name}')?{API_VERSION}")).await?;
            sources.push(self.asked_of(name, source.get("kind"))?);
        }
        // A source that the request does not list would be searched without the filter.
        match self.filter.is_some() && (sources.is_empty() || sources.len() < listed.len()) {
            true => Err(no_filter()),
            false => Ok(sources),
        }
    }

    /// The parameters for the source of this name and kind.
    fn asked_of(&self, name: &str, kind: Option<&Value>) -> Result<Value, SessionError> {
        let mut asked =
            json!({"knowledgeSourceName": name, "includeReferenceSourceData": true, "kind": kind});
        if let (Some(filter), Some(asked)) = (&self.filter, asked.as_object_mut()) {
            if kind.and_then(Value::as_str) != Some(OF_INDEX) {
                return Err(no_filter());
            }
            asked.insert("filterAddOn".to_owned(), (&**filter).into());
        }
        Ok(asked)
    }
}

fn no_filter() -> SessionError {
    let what = "azure ai search: a filter needs a knowledge base of 1 to 20 sources, which all are indexes";
    SessionError::new(SessionErrorKind::Invalid, what)
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn texts(answer: &Value) -> Vec<String> {
    let content = list(answer.get("response")).iter().flat_map(|message| list(message.get("content")));
    let texts = content.filter_map(|content| content.get("text").and_then(Value::as_str));
    texts.filter(|text| !text.trim().is_empty()).flat_map(entries).take(ENTRIES_MAX).collect()
}

/// The entries of an answer text. Extracted data is a list of pieces with the numbers of their sources: each piece is
/// one entry. Any other text is one entry.
fn entries(text: &str) -> Vec<String> {
    let pieces: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    let piece = |piece: &Value| {
        let content = piece.get("content")?.as_str()?;
        Some(format!("[{}] {}", piece.get("ref_id")?, cut(content, TEXT_BYTES_MAX)))
    };
    match pieces.iter().map(piece).collect::<Option<Vec<_>>>() {
        Some(pieces) if !pieces.is_empty() => pieces,
        _ => vec![cut(text, TEXT_BYTES_MAX).into_owned()],
    }
}

/// The addresses of the sources, each with the number that the texts of the pieces refer to.
fn places(answer: &Value) -> Option<String> {
    let place = |source: &Value| {
        let id = source.get("id")?.as_str()?;
        let place = PLACES
            .iter()
            .find_map(|name| source.get(*name).and_then(Value::as_str).filter(|place| !place.is_empty()))?;
        Some(format!("[{}] {}", cut(id, 64), cut(place, 512)))
    };
    let places: Vec<_> = list(answer.get("references")).iter().filter_map(place).take(SOURCES_MAX).collect();
    (!places.is_empty()).then(|| format!("Sources: {}", places.join(", ")))
}
