//! Counts of the reads and writes of a store: by the operating system for files, and by the server for other stores.

use std::fs;

/// Named counts since the start of the process or the server.
pub(crate) type Counts = Vec<(&'static str, u64)>;

/// The source of the counts.
pub(crate) enum Meter {
    /// The operating system, for the reads and writes of this process.
    Process,
    #[cfg(feature = "postgres")]
    Postgres(String),
    #[cfg(feature = "redis")]
    Redis(String),
}

impl Meter {
    /// The source of counts for the store of this URL, if there is one.
    pub(crate) fn of(url: &str) -> Option<Self> {
        let bare = url.strip_prefix("encrypted:").unwrap_or(url);
        match bare.split_once(':')?.0 {
            "sqlite" | "jsonl" => fs::metadata(PROCESS).is_ok().then_some(Self::Process),
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => Some(Self::Postgres(bare.to_owned())),
            #[cfg(feature = "redis")]
            "redis" => Some(Self::Redis(bare.to_owned())),
            _ => None,
        }
    }

    pub(crate) fn read(&self) -> Counts {
        match self {
            Self::Process => process(),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => postgres::counts(url),
            #[cfg(feature = "redis")]
            Self::Redis(url) => redis_counts(url),
        }
    }
}

/// The file in which Linux has the counts of this process.
const PROCESS: &str = "/proc/self/io";

/// Bytes of system calls, from the cache or the disk.
fn process() -> Counts {
    let said = fs::read_to_string(PROCESS).unwrap();
    let number = |key: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        line.unwrap().parse().unwrap()
    };
    vec![("bytes read", number("rchar")), ("bytes written", number("wchar"))]
}

/// Calls of clients, the commands that scripts called, and the bytes of the answers. Reading the counts adds a little
/// to them.
#[cfg(feature = "redis")]
fn redis_counts(url: &str) -> Counts {
    let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
    let mut ask = |what: &str| -> String { redis::cmd("INFO").arg(what).query(&mut connection).unwrap() };
    let (commands, stats) = (ask("commandstats"), ask("stats"));
    let mut calls = (0, 0);
    for line in commands.lines() {
        let Some((name, counts)) = line.strip_prefix("cmdstat_").and_then(|it| it.split_once(":calls="))
        else {
            continue;
        };
        let count: u64 = counts.split(',').next().unwrap().parse().unwrap();
        match name {
            "info" | "ping" | "hello" | "select" | "quit" => {}
            name if name.starts_with("client") => {}
            "evalsha" | "eval" | "evalsha_ro" => calls.0 += count,
            _ => calls.1 += count,
        }
    }
    let out = stats.lines().find_map(|line| line.strip_prefix("total_net_output_bytes:")).unwrap();
    vec![("round trips", calls.0), ("commands", calls.1), ("bytes answered", out.trim().parse().unwrap())]
}

#[cfg(feature = "postgres")]
mod postgres {
    use core::time::Duration;

    use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

    use super::Counts;

    /// Fetched rows and accessed pages in the tables of the store. A server process adds its counts when it ends: this
    /// function waits until its connection is the only one.
    pub(super) fn counts(url: &str) -> Counts {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
            let connection = tokio::spawn(connection);
            let mut looks = 0;
            while number(&client, OTHERS).await != 0 {
                looks += 1;
                assert!(
                    looks < LOOKS_MAX,
                    "others are connected to the server: what they read would be counted too"
                );
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let counts = vec![
                ("rows", number(&client, ROWS).await),
                ("pages", number(&client, PAGES).await),
                ("transactions", number(&client, TRANSACTIONS).await),
            ];
            drop(client);
            connection.await.unwrap().unwrap();
            counts
        })
    }

    /// Maximum number of queries for other connections: one each 10 ms, ten seconds in total.
    const LOOKS_MAX: u32 = 1_000;

    const OTHERS: &str = "SELECT count(*) FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    const ROWS: &str =
        "SELECT coalesce(sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), 0)::bigint
        FROM pg_stat_user_tables WHERE relname LIKE 'epitome%'";
    const PAGES: &str = "SELECT coalesce(sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0)
        + coalesce(toast_blks_read + toast_blks_hit, 0) + coalesce(tidx_blks_read + tidx_blks_hit, 0)), 0)::bigint
        FROM pg_statio_user_tables WHERE relname LIKE 'epitome%'";
    const TRANSACTIONS: &str = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";

    async fn number(client: &Client, query: &str) -> u64 {
        let answer = client.simple_query(query).await.unwrap();
        let row = answer.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        row.unwrap().parse().unwrap()
    }
}
