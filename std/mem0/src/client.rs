//! Requests to Mem0.

use core::num::NonZeroUsize;

use epitome_http::{Endpoint, Repeat};
use epitome_std::session::SessionError;
use serde_json::{Map, Value, json};

use crate::filter::Filter;

/// Kind of server. The paths and the header of the API key depend on it.
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
    /// Returns the memories that are nearest to `query` among the memories with the ids of `filter`; `None` if the
    /// answer has an unexpected form.
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

    /// Stores messages under the ids of `stamp`.
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
