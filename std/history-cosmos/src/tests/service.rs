//! The service of the tests: the emulator of the SDK, in this process.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use azure_core::http::Request;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::options::Region;
use azure_data_cosmos::{
    AccountEndpoint, AccountReference, ContainerClient, CosmosClientBuilder, CosmosRuntimeBuilder,
    RoutingStrategy,
};
use azure_data_cosmos_driver::fault_injection::{
    CustomResponseBuilder, FaultInjectionConditionBuilder, FaultInjectionErrorType,
    FaultInjectionResultBuilder, FaultInjectionRule, FaultInjectionRuleBuilder, FaultOperationType,
};
use azure_data_cosmos_driver::in_memory_emulator::{
    InMemoryEmulatorHttpClient, RequestObserver, VirtualAccountConfig, VirtualRegion,
};
use epitome_history::RemoteOptions;
use serde_json::Value;

use crate::CosmosStore;
use crate::requests::query_container;
use crate::write::TEXT_BYTES_MAX;

const URL: &str = "https://eastus.emulator.local";

/// An account with a database.
pub(super) struct Service {
    emulator: Arc<InMemoryEmulatorHttpClient>,
    traffic: Arc<Traffic>,
    containers: Mutex<BTreeSet<String>>,
    text_bytes_max: usize,
}

/// The requests that have arrived.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    requests: AtomicUsize,
    bytes: AtomicUsize,
    /// The number of further batches after which this rule begins.
    limit: Mutex<Option<(usize, Arc<FaultInjectionRule>)>>,
}

impl RequestObserver for Traffic {
    fn on_request(&self, request: &Request) {
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.bytes.fetch_add(azure_core::Bytes::from(request.body()).len(), Ordering::SeqCst);
        let is_batch =
            request.headers().iter().any(|(name, _)| name.as_str() == "x-ms-cosmos-is-batch-request");
        let mut limit = self.limit.lock().unwrap();
        if let Some((left, rule)) = limit.as_mut().filter(|_| is_batch) {
            *left = left.saturating_sub(1);
            if *left == 0 {
                rule.enable();
            }
        }
    }
}

impl Traffic {
    /// The number of requests since the last call, and their bytes.
    pub(super) fn take(&self) -> (usize, usize) {
        (self.requests.swap(0, Ordering::SeqCst), self.bytes.swap(0, Ordering::SeqCst))
    }
}

impl Service {
    pub(super) fn new() -> Self {
        let region = VirtualRegion::new("East US", url::Url::parse(URL).unwrap());
        let config = VirtualAccountConfig::new(vec![region]).unwrap();
        let traffic = Arc::new(Traffic::default());
        let emulator =
            InMemoryEmulatorHttpClient::new(config).with_request_observer(Arc::clone(&traffic) as _);
        emulator.store().create_database("agents");
        Self {
            emulator: Arc::new(emulator),
            traffic,
            containers: Mutex::default(),
            text_bytes_max: TEXT_BYTES_MAX,
        }
    }

    /// Stores that divide longer texts into pieces.
    pub(super) fn with_texts_of(self, text_bytes_max: usize) -> Self {
        Self { text_bytes_max, ..self }
    }

    pub(super) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    pub(super) fn make(&self, name: &str, key: &str) {
        let key =
            serde_json::from_str(&format!(r#"{{"paths":["{key}"],"kind":"Hash","version":2}}"#)).unwrap();
        self.emulator.store().create_container("agents", name, key);
    }

    /// Another client of this container, which is created if it does not exist.
    pub(super) async fn container(&self, name: &str, rules: Vec<Arc<FaultInjectionRule>>) -> ContainerClient {
        if self.containers.lock().unwrap().insert(name.to_owned()) {
            self.make(name, "/session_id");
        }
        self.opened(name, rules).await.unwrap()
    }

    pub(super) async fn opened(
        &self,
        name: &str,
        rules: Vec<Arc<FaultInjectionRule>>,
    ) -> azure_data_cosmos::Result<ContainerClient> {
        let account = AccountReference::with_authentication_key(
            URL.parse::<AccountEndpoint>().unwrap(),
            "dGVzdGtleQ==",
        );
        let runtime = match rules.is_empty() {
            true => self.emulator.runtime_builder(),
            false => self.emulator.runtime_builder_with_fault_rules(rules),
        };
        let runtime = CosmosRuntimeBuilder::from(runtime).build().await.unwrap();
        let client = CosmosClientBuilder::new().with_runtime(runtime);
        let client = client.build(account, RoutingStrategy::ProximityTo(Region::EAST_US)).await.unwrap();
        client.database_client("agents").container_client(name.to_owned(), None).await
    }

    pub(super) async fn store(&self, name: &str) -> CosmosStore {
        self.store_with(name, Vec::new()).await
    }

    pub(super) async fn store_with(&self, name: &str, rules: Vec<Arc<FaultInjectionRule>>) -> CosmosStore {
        let options = RemoteOptions::default().with_retries(1);
        let mut store = CosmosStore::in_container(self.container(name, rules).await, options).await.unwrap();
        store.text_bytes_max = self.text_bytes_max;
        store
    }

    /// A store whose process ends after this many batches: none of its later requests arrives.
    pub(super) async fn store_that_ends(&self, name: &str, after: usize) -> CosmosStore {
        let gone = CustomResponseBuilder::new(azure_core::http::StatusCode::Forbidden).build();
        let rule = FaultInjectionRuleBuilder::new(
            "ends",
            FaultInjectionResultBuilder::new().with_custom_response(gone).build(),
        );
        let rule = Arc::new(rule.build());
        rule.disable();
        let store = self.store_with(name, vec![Arc::clone(&rule)]).await;
        if after == 0 {
            rule.enable();
        } else {
            *self.traffic.limit.lock().unwrap() = Some((after, rule));
        }
        store
    }

    /// All items of a container.
    pub(super) async fn items(&self, name: &str) -> Vec<Value> {
        let container = self.container(name, Vec::new()).await;
        let scope = FeedScope::full_container();
        query_container(
            &container,
            RemoteOptions::default(),
            "items",
            "SELECT * FROM c".into(),
            scope,
            usize::MAX,
        )
        .await
        .unwrap()
    }
}

/// A rule that makes this many batches fail.
pub(super) fn failing(error: FaultInjectionErrorType, times: u32) -> Arc<FaultInjectionRule> {
    let batches =
        FaultInjectionConditionBuilder::new().with_operation_type(FaultOperationType::BatchItem).build();
    let result = FaultInjectionResultBuilder::new().with_error(error).build();
    Arc::new(
        FaultInjectionRuleBuilder::new("failing", result)
            .with_condition(batches)
            .with_hit_limit(times)
            .build(),
    )
}
