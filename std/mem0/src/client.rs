//! Requests to Mem0.

use core::num::NonZeroUsize;

use epitome_http::{Endpoint, Repeat};
use epitome_std::session::SessionError;
use serde_json::{Map, Value, json};

use crate::filter::Filter;

/// The service: each has its own paths, and its own place for the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Hosted,
    SelfHosted,
}

#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) service: Service,
    pub(crate) endpoint: Endpoint,
}

impl Client {
    /// The memories that are nearest to `query`, among those with these ids; `None` if the answer has another form.
    pub(crate) async fn search(
        &self,
        query: &str,
        filter: &Filter,
        found_max: Option<NonZeroUsize>,
    ) -> Result<Option<Vec<Value>>, SessionError> {
        let path = match self.service {
            Service::Hosted => "/v3/memories/search/",
            Service::SelfHosted => "/search",
        };
        let mut body = json!({"query": query, "filters": filter});
        if let (Some(found_max), Some(body)) = (found_max, body.as_object_mut()) {
            body.insert("top_k".to_owned(), found_max.get().into());
        }
        Ok(match self.endpoint.post(path, &body, Repeat::Always).await? {
            Value::Array(found) => Some(found),
            Value::Object(mut answer) => match answer.remove("results") {
                Some(Value::Array(found)) => Some(found),
                _ => None,
            },
            _ => None,
        })
    }

    /// Stores what was said under these ids.
    pub(crate) async fn add(
        &self,
        messages: Vec<Value>,
        stamp: Filter,
        infer: Option<bool>,
    ) -> Result<(), SessionError> {
        let mut body = Map::new();
        body.insert("messages".to_owned(), messages.into());
        let path = match self.service {
            Service::Hosted => {
                body.insert("filters".to_owned(), stamp.into());
                "/v3/memories/add/"
            }
            Service::SelfHosted => {
                body.extend(stamp);
                "/memories"
            }
        };
        body.extend(infer.map(|infer| ("infer".to_owned(), infer.into())));
        self.endpoint.send(path, &body.into(), Repeat::IfUndone).await
    }
}
