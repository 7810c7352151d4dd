//! Translates errors of Cosmos DB into errors of a store, without the messages of the service.

use azure_data_cosmos::{CosmosError, CosmosStatus};
use epitome_history::rules::corrupt;
use epitome_history::{StoreError, StoreErrorKind};

/// The error of `operation`, for its caller.
///
/// It contains no message of the service, because that may repeat the request.
pub(crate) fn of_cosmos(operation: &str, error: &CosmosError) -> StoreError {
    of_status(operation, error.status())
}

pub(crate) fn of_status(operation: &str, status: CosmosStatus) -> StoreError {
    let (kind, advice) = match (u16::from(status.status_code()), status.sub_status().map(|sub| sub.value())) {
        (404, Some(READ_SESSION_NOT_AVAILABLE)) => meaning(503),
        (code, _) => meaning(code),
    };
    let place = match (status.name(), status.sub_status()) {
        (Some(name), _) => format!(" ({}, {name})", u16::from(status.status_code())),
        (None, Some(sub)) => format!(" ({}/{})", u16::from(status.status_code()), sub.value()),
        (None, None) => format!(" ({})", u16::from(status.status_code())),
    };
    StoreError::new(kind, format!("{operation}: {advice}{place}"))
}

/// The meaning of a status of HTTP.
fn meaning(status: u16) -> (StoreErrorKind, &'static str) {
    use StoreErrorKind::{Corrupt, Invalid, Unavailable};
    match status {
        401 => (Invalid, "Cosmos DB refuses the key or the token; look at the credential of the account"),
        403 => (
            Invalid,
            "Cosmos DB forbids that; give the identity the role `Cosmos DB Built-in Data Contributor`, and let the firewall pass",
        ),
        404 => {
            (Invalid, "there is no such database or container; make it with the partition key `/session_id`")
        }
        400 => {
            (Invalid, "Cosmos DB refuses the request; is the partition key of the container `/session_id`?")
        }
        413 => (Invalid, "an item is larger than Cosmos DB takes"),
        408 | 410 | 424 | 449 | 500..=599 => (Unavailable, "Cosmos DB has not answered; try again"),
        429 => (Unavailable, "Cosmos DB has no request units left; try again later, or provide more"),
        200..=299 => (Corrupt, "what is stored is not what this store writes"),
        _ => (Unavailable, "Cosmos DB failed; try again"),
    }
}

/// Substatus: a replica does not yet have the writes of the client.
const READ_SESSION_NOT_AVAILABLE: u16 = 1002;

/// The error for an item whose form this store does not write.
pub(crate) fn unread(name: &str) -> StoreError {
    corrupt(format!("{name} cannot be read"))
}

/// The error for a missing item of a session.
pub(crate) fn lost(name: &str) -> StoreError {
    corrupt(format!("{name} is missing: an item of the session was deleted by somebody else"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_that_is_behind_is_not_a_container_that_is_missing() {
        let status = CosmosStatus::new(404.into());
        let kind = |status| of_status("load", status).kind();
        assert_eq!(kind(status), StoreErrorKind::Invalid);
        assert_eq!(kind(status.with_sub_status(READ_SESSION_NOT_AVAILABLE)), StoreErrorKind::Unavailable);
    }
}
