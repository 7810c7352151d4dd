//! The contract on a cluster of three servers, whose keys are placed by their tags.

use std::sync::Arc;

use async_trait::async_trait;
use epitome_conformance::Subject;
use epitome_core::Seq;
use epitome_std::history::{
    Append, AppendToken, HistoryStore, RedisStore, SessionId, StoreError, StoreErrorKind,
};
use futures::executor::block_on;
use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;

use super::server::{options, suite, user, variable};

/// A prefix of keys for each place, on a cluster.
struct Cluster {
    urls: String,
    prefix: String,
    runtime: Runtime,
}

impl Cluster {
    fn new() -> Option<Self> {
        let urls = variable("EPITOME_TEST_REDIS_CLUSTER")?;
        let prefix = format!("epitome-test-{}", Uuid::new_v4().simple());
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Some(Self { urls, prefix, runtime })
    }

    async fn connect(&self, place: &str) -> Result<RedisStore, StoreError> {
        let options = options(format!("{}:{place}", self.prefix));
        RedisStore::connect_cluster(&self.urls.split(',').collect::<Vec<_>>(), options).await
    }
}

#[async_trait]
impl Subject for Cluster {
    async fn open(&self, place: &str) -> Result<Arc<dyn HistoryStore>, StoreError> {
        Ok(Arc::new(self.connect(place).await?))
    }

    fn is_apart(&self) -> bool {
        true
    }
}

#[test]
fn the_whole_suite_passes_on_three_servers() {
    let Some(cluster) = Cluster::new() else { return };
    let report = cluster.runtime.block_on(suite().with_cases(10).run(&cluster));
    report.assert_passed();
    assert!(report.passed() >= 100, "{report}");
}

#[test]
fn sessions_lie_on_all_servers_and_are_listed_in_one_order() {
    let Some(cluster) = Cluster::new() else { return };
    let store = cluster.runtime.block_on(cluster.connect("many")).unwrap();
    let mut names: Vec<String> = (0..60).map(|number| format!("session {number}")).collect();
    for name in &names {
        let append = AppendToken::new("t");
        let (id, entries) = (SessionId::new(&**name), [user(0)]);
        cluster.runtime.block_on(store.append(&id, &Append::new(&append, Seq(0), &entries))).unwrap();
    }
    names.sort();
    let listed = cluster.runtime.block_on(store.list(None, 99)).unwrap();
    assert_eq!(listed.iter().map(|info| info.id.as_str()).collect::<Vec<_>>(), names);
    for url in cluster.urls.split(',') {
        let mut node = redis::Client::open(url).unwrap().get_connection().unwrap();
        let pattern = format!("{}:many:*:session:*", cluster.prefix);
        let keys: Vec<String> = redis::cmd("KEYS").arg(pattern).query(&mut node).unwrap();
        assert!((1..60).contains(&keys.len()), "{} keys", keys.len());
    }
}

#[test]
fn one_server_of_a_cluster_is_not_taken_for_all() {
    let Some(cluster) = Cluster::new() else { return };
    let url = cluster.urls.split(',').next().unwrap();
    // The layout may be on this very server; the sessions are on all servers.
    let answers: Vec<_> = match RedisStore::open(url, options(&cluster.prefix)) {
        Err(error) => vec![error],
        Ok(store) => {
            let load = |number: u32| block_on(store.load(&SessionId::new(number.to_string())));
            (0..20).filter_map(|number| load(number).err()).collect()
        }
    };
    let mut refused = answers.iter().filter(|error| error.kind() == StoreErrorKind::Invalid);
    assert!(refused.next().unwrap().to_string().contains("one of a cluster"));
}
