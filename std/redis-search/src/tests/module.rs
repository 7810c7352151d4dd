//! The queries in the parser of a real module: Debian's `redis-redisearch` has version 1.2, which has the query
//! language, and none of the newer commands.

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

/// Path of the module in Debian, unless `EPITOME_TEST_REDISEARCH` names another.
const MODULE: &str = "/usr/lib/redis/modules/redisearch.so";

/// A server with the module, which ends when this value is dropped.
struct Module {
    child: Child,
    connection: RefCell<redis::Connection>,
    _folder: tempfile::TempDir,
}

impl Module {
    /// Returns `None` after a message with the reason.
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

impl Module {
    /// Checks that the module finds the entries of each id, and none of the others.
    fn keeps_apart(&self, ids: &[&str], input: &str) -> Result<(), TestCaseError> {
        // At the first time there is no index.
        let _ = self.ask::<()>(&["FT.DROP", "t"]);
        let tag = ["user_id", "TAG", "SEPARATOR", ","];
        self.ask::<()>(&[&["FT.CREATE", "t", "SCHEMA", "content", "TEXT"][..], &tag].concat()).unwrap();
        let filter = |id: &str| Filter::of(&Scope::default().with_user(id)).ok();
        // This version accepts no stop word in a tag; later versions do.
        let ids = ids.iter().filter(|id| !STOP_WORDS.contains(id));
        let kept: Vec<_> = ids.filter_map(|id| Some((*id, filter(id)?))).collect();
        for (at, (id, _)) in kept.iter().enumerate() {
            let (key, text) = (at.to_string(), format!("tea kestrel {id}"));
            let fields = ["content", &text, "user_id", id];
            self.ask::<()>(&[&["FT.ADD", "t", &key, "1", "FIELDS"][..], &fields].concat()).unwrap();
        }
        let words = words(&format!("{input} tea"));
        for (at, (id, filter)) in kept.iter().enumerate() {
            let query = Search { index: "t", filter, words: &words, vector: None, found_max: 10 }.query();
            let found: redis::RedisResult<Vec<String>> = self.ask(&["FT.SEARCH", "t", &query, "NOCONTENT"]);
            prop_assert_eq!(found, Ok(vec!["1".to_owned(), at.to_string()]), "{} of {:?}", query, id);
        }
        Ok(())
    }
}

#[test]
fn the_module_reads_what_was_meant() {
    let Some(module) = Module::start() else { return };
    let signs = [
        "_", "__", "a_", "|", "a|b", "b", "}", "*", "a*", "@", "(b", "\\a", "a\\", "'", "?", "a b", "-b",
        "~", "é", "$x",
    ];
    module.keeps_apart(&signs, "a | (b) @user_id:{b} _").unwrap();
    let ids = prop::collection::vec(odd(), 1..5);
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(1_000) });
    let ran = runner.run(&(ids, odd()), |(ids, input)| {
        // The module ignores case, so the provider checks the found entries again.
        let ids: BTreeMap<String, String> = ids.into_iter().map(|id| (id.to_lowercase(), id)).collect();
        module.keeps_apart(&ids.values().map(String::as_str).collect::<Vec<_>>(), &input)
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
}
