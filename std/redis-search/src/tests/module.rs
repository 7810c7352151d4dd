//! The queries under the parser of a real module: Debian's `redis-redisearch` has version 1.2, which knows the query language, and none of the
//! newer commands.

use core::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::escaping::odd;
use super::query::STOP_WORDS;
use super::*;
use crate::filter::Filter;
use crate::query::{Search, words};

/// Where Debian has it, unless `EPITOME_TEST_REDISEARCH` says otherwise.
const MODULE: &str = "/usr/lib/redis/modules/redisearch.so";

/// A server with the module, which ends with this.
struct Module {
    child: Child,
    connection: RefCell<redis::Connection>,
    _folder: tempfile::TempDir,
}

impl Module {
    /// `None` says why.
    fn start() -> Option<Self> {
        let skipped = |why: &str| eprintln!("skipped: {why}");
        let module = std::env::var_os("EPITOME_TEST_REDISEARCH").map_or_else(|| MODULE.into(), PathBuf::from);
        if !module.exists() {
            skipped(&format!("{} is missing: apt-get install redis-redisearch", module.display()));
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let child = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--unixsocket"])
            .arg(&socket)
            .arg("--loadmodule")
            .arg(&module)
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .spawn();
        let Ok(mut child) = child else {
            skipped("there is no redis-server");
            return None;
        };
        let client = redis::Client::open(format!("unix://{}", socket.display())).unwrap();
        for _ in 0..300 {
            if let Ok(connection) = client.get_connection() {
                return Some(Self { child, connection: RefCell::new(connection), _folder: folder });
            }
            if child.try_wait().unwrap().is_some() {
                skipped("this redis-server does not take the module");
                return None;
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
        let _ = child.kill();
        panic!("redis-server does not start");
    }

    fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query(&mut *self.connection.borrow_mut())
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The module finds what is of these ids, and what is of others not, whatever the ids and the input are.
#[test]
fn the_module_reads_what_was_meant() {
    let Some(module) = Module::start() else { return };
    let ids = prop::collection::vec(odd(), 1..5);
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(1_000) });
    let ran = runner.run(&(ids, odd()), |(ids, input)| {
        // The module compares them without regard to case, and so the provider looks at what it has found once more.
        let ids: BTreeMap<String, String> = ids.into_iter().map(|id| (id.to_lowercase(), id)).collect();
        let ids: Vec<_> = ids.into_values().collect();
        // There is none the first time.
        let _ = module.ask::<()>(&["FT.DROP", "t"]);
        let made = module.ask::<()>(&[
            "FT.CREATE",
            "t",
            "SCHEMA",
            "content",
            "TEXT",
            "user_id",
            "TAG",
            "SEPARATOR",
            ",",
        ]);
        prop_assert!(made.is_ok(), "{made:?}");
        let filters: Vec<_> = ids.iter().map(|id| Filter::of(&Scope::default().with_user(&**id))).collect();
        for (at, id) in ids.iter().enumerate().filter(|(at, _)| filters[*at].is_ok()) {
            let text = format!("tea kestrel {id}");
            module
                .ask::<()>(&["FT.ADD", "t", &at.to_string(), "1", "FIELDS", "content", &text, "user_id", id])
                .unwrap();
        }
        for (at, filter) in filters.iter().enumerate() {
            // In a tag this version takes no stop word; the later ones do.
            let Ok(filter) = filter else { continue };
            if STOP_WORDS.contains(&&*ids[at]) {
                continue;
            }
            let words = words(&format!("{input} tea"));
            let query = Search { index: "t", filter, words: &words, vector: None, found_max: 10 }.query();
            let found: redis::RedisResult<Vec<String>> = module.ask(&["FT.SEARCH", "t", &query, "NOCONTENT"]);
            prop_assert_eq!(found.unwrap(), ["1".to_owned(), at.to_string()], "{} of {:?}", query, ids);
        }
        Ok(())
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
}
