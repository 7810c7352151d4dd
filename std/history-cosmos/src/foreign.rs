//! The messages that Microsoft Agent Framework for Python writes into the same container.

use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::{ContainerClient, Query};
use epitome_history::{RemoteOptions, StoreError};
use serde::Deserialize;
use serde_json::Value;

use crate::failure::{of_cosmos, unread};
use crate::requests::query_container;

#[derive(Debug, Deserialize)]
struct Item {
    message: Value,
}

/// The messages of a session under a source id, oldest first, as JSON texts.
pub(crate) async fn messages(
    container: &ContainerClient,
    remote: RemoteOptions,
    session_id: &str,
    source_id: &str,
) -> Result<Vec<Box<str>>, StoreError> {
    const OPERATION: &str = "agent_framework_messages";
    let query = "SELECT c.message FROM c WHERE c.source_id = @source_id ORDER BY c.sort_key ASC";
    let query = Query::from(query)
        .with_parameter("@source_id", source_id)
        .map_err(|error| of_cosmos(OPERATION, &error))?;
    let scope = FeedScope::partition(session_id.to_owned());
    let items: Vec<Item> = query_container(container, remote, OPERATION, query, scope, usize::MAX).await?;
    let text = |item: Item| match item.message {
        Value::Object(_) => Ok(item.message.to_string().into()),
        _ => Err(unread("a message of Agent Framework")),
    };
    items.into_iter().map(text).collect()
}
