//! Scopes as Mem0's filters.

use epitome_std::memory::Scope;
use serde_json::{Map, Value};

/// The ids that a found memory must have.
pub(crate) type Filter = Map<String, Value>;

/// All ids of the scope, under the names that Mem0 uses for stored memories.
pub(crate) fn stamp(scope: &Scope) -> Filter {
    filter([
        ("user_id", scope.user()),
        ("agent_id", scope.agent()),
        ("app_id", scope.application()),
        ("run_id", scope.thread()),
    ])
}

/// The filters of a search, one for each of its requests.
pub(crate) fn filters(scope: &Scope) -> Vec<Filter> {
    let around = [("app_id", scope.application()), ("run_id", scope.thread())];
    let narrowed = |name, id: Option<&str>| {
        let [application, thread] = around;
        id.map(|_| filter([(name, id), application, thread]))
    };
    let narrow = [narrowed("user_id", scope.user()), narrowed("agent_id", scope.agent())];
    let filters: Vec<_> = narrow.into_iter().flatten().collect();
    match filters.is_empty() && !scope.is_empty() {
        true => vec![filter(around)],
        false => filters,
    }
}

fn filter<const N: usize>(ids: [(&str, Option<&str>); N]) -> Filter {
    ids.into_iter().filter_map(|(name, id)| Some((name.to_owned(), Value::from(id?)))).collect()
}
