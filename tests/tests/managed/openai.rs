//! Compaction by OpenAI, and by other vendors of the Responses API.

mod faults;
mod kept;
mod proposal;
pub(crate) mod sessions;

use epitome::compactors::managed::openai::{OpenAiCompaction, ResponsesVendor};

use crate::managed::support::server;

/// The API key that the server accepts.
pub(crate) const KEY: &str = "sk-test-4711";

/// The service of a vendor on the server.
pub(crate) fn service(vendor: &str) -> OpenAiCompaction {
    let key = || KEY.into();
    let at = format!("{}/{vendor}", server());
    match vendor {
        "azure-openai" => {
            OpenAiCompaction::azure(&at, "deployed", key()).unwrap().with_api_version("preview")
        }
        "xai" => OpenAiCompaction::xai("grok", key()).unwrap().with_base_url(&format!("{at}/v1")),
        _ => OpenAiCompaction::of(ResponsesVendor::other(vendor), &format!("{at}/v1"), key()).unwrap(),
    }
}
