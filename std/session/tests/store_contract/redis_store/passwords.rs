//! A server by host and port, and passwords that change.

use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex};

use epitome_std::history::StoreErrorKind::{Invalid, Unavailable};
use epitome_std::history::{
    HistoryStore as _, Password, RedisOptions, RedisServer, RedisStore, RemoteOptions, StoreError,
};
use epitome_std::message::Message;
use epitome_std::provider::{ContextProvider as _, NamedAgent, Providers, RedisHistoryProvider};
use epitome_std::session::{AgentResponse, AgentSession, SessionContext};
use futures::executor::block_on;
use uuid::Uuid;

use super::mock::Mock;
use super::server::{Room, append, session};
use crate::remote::patient;

/// A user of the server whose password changes.
struct Account {
    room: Room,
    name: String,
    password: Arc<Mutex<String>>,
    asked: Arc<AtomicUsize>,
}

impl Account {
    fn new() -> Option<Self> {
        let account = Self {
            room: Room::new()?,
            name: format!("epitome-test-{}", Uuid::new_v4().simple()),
            password: Arc::default(),
            asked: Arc::default(),
        };
        account.rotate("hunter1");
        Some(account)
    }

    /// Gives the user another password, and ends the user's connections.
    fn rotate(&self, password: &str) {
        let mut admin = self.room.connection();
        let mut set = redis::cmd("ACL");
        set.arg("SETUSER").arg(&self.name).arg("on").arg("resetpass").arg(format!(">{password}"));
        set.arg("~*").arg("+@all").exec(&mut admin).unwrap();
        redis::cmd("CLIENT").arg("KILL").arg("USER").arg(&self.name).exec(&mut admin).unwrap();
        password.clone_into(&mut self.password.lock().unwrap());
    }

    fn server(&self) -> RedisServer {
        let (password, asked) = (Arc::clone(&self.password), Arc::clone(&self.asked));
        at(&self.room.url).with_user(&*self.name).with_password(Password::from_fn(move || {
            asked.fetch_add(1, Ordering::SeqCst);
            let password = password.lock().unwrap().clone();
            Box::pin(async move { Ok(password.into()) })
        }))
    }

    fn options(&self) -> RedisOptions {
        self.room.options().with_remote(patient().with_connections_max(NonZeroUsize::MIN))
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        redis::cmd("ACL").arg("DELUSER").arg(&self.name).exec(&mut self.room.connection()).unwrap();
    }
}

/// The server of this URL, by its host and port.
fn at(url: &str) -> RedisServer {
    let (_, place) = url.rsplit_once(['@', '/']).unwrap();
    let (host, port) = place.rsplit_once(':').unwrap();
    RedisServer::new(host).with_port(port.parse().unwrap()).with_tls(false)
}

fn opened(server: &RedisServer, remote: RemoteOptions) -> StoreError {
    let remote = remote.with_retry_delay(Duration::from_millis(1));
    let error = RedisStore::open_at(server, RedisOptions::default().with_remote(remote)).unwrap_err();
    assert!(!format!("{error} {error:?} {server:?}").contains("hunter"), "{error:?}");
    error
}

#[test]
fn a_password_that_changes_is_asked_for_at_each_new_connection() {
    let Some(account) = Account::new() else { return };
    let store = RedisStore::open_at(&account.server(), account.options()).unwrap();
    for seq in 0..5 {
        append(&store, &format!("t{seq}"), seq).unwrap();
    }
    assert_eq!(account.asked.load(Ordering::SeqCst), 1, "once for one connection");
    account.rotate("hunter2");
    append(&store, "t5", 5).unwrap();
    assert_eq!(block_on(store.load(&session())).unwrap().live.len(), 6);
    assert_eq!(account.asked.load(Ordering::SeqCst), 2);
    // A password that the server does not know is refused, and requested again the next time.
    "hunter3".clone_into(&mut account.password.lock().unwrap());
    let mut admin = account.room.connection();
    redis::cmd("CLIENT").arg("KILL").arg("USER").arg(&account.name).exec(&mut admin).unwrap();
    let error = block_on(store.load(&session())).unwrap_err();
    assert!(error.kind() == Invalid && error.to_string().contains("name and password"), "{error}");
    assert!(!format!("{error} {error:?} {store:?}").contains("hunter"), "{error:?}");
    account.rotate("hunter4");
    assert_eq!(block_on(store.load(&session())).unwrap().live.len(), 6);
}

#[test]
fn a_fixed_password_is_that_of_a_url_or_stands_in_its_place() {
    let Some(account) = Account::new() else { return };
    let (name, room) = (&account.name, &account.room);
    let by_url = |text: &str| RedisServer::from_url(&room.url.replace("redis://", text)).unwrap();
    for server in [
        by_url(&format!("redis://{name}:hunter1@")),
        by_url(&format!("redis://{name}:wrong@")).with_password("hunter1"),
        by_url("redis://nobody:wrong@").with_user(&**name).with_password("hunter1"),
        at(&room.url).with_user(&**name).with_password("hunter1"),
    ] {
        RedisStore::open_at(&server, account.options()).unwrap();
    }
    let error = opened(&at(&room.url).with_user(&**name).with_password("hunter9"), patient());
    assert_eq!(error.kind(), Invalid, "{error}");
}

#[test]
fn a_password_that_cannot_be_had_is_the_error_of_the_operation() {
    let mock = Mock::new("$-1\r\n");
    let vault = || StoreError::new(Unavailable, "the vault is locked");
    let server =
        at(&mock.url).with_password(Password::from_fn(move || Box::pin(async move { Err(vault()) })));
    let error = opened(&server, patient());
    assert!(error.kind() == Unavailable && error.to_string().contains("the vault is locked"), "{error}");
    // The time limit of an attempt includes the request for the password.
    let never = Password::from_fn(|| Box::pin(core::future::pending()));
    let short = RemoteOptions::default().with_timeout(Duration::from_millis(50)).with_retries(1);
    let error = opened(&at(&mock.url).with_password(never), short);
    assert!(error.kind() == Unavailable && error.to_string().contains("within 50ms"), "{error}");
    assert_eq!(mock.asked.load(Ordering::SeqCst), 0);
    let nowhere = opened(&RedisServer::new("").with_password("hunter2"), patient());
    assert!(nowhere.kind() == Invalid && nowhere.to_string().contains("the host is empty"), "{nowhere}");
    // With TLS, unless it is disabled.
    let error = opened(&at(&mock.url).with_tls(true).with_password("hunter2"), patient().with_retries(0));
    assert!(error.kind() == Unavailable && mock.asked.load(Ordering::SeqCst) == 0, "{error}");
    assert_eq!(
        format!("{:?}", RedisServer::new("cache")),
        "RedisServer { place: \"rediss://cache:6380\", .. }"
    );
}

#[test]
fn a_provider_over_a_server_has_the_source_id_of_the_decision_record() {
    let Some(account) = Account::new() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let history = RedisHistoryProvider::in_redis(&account.server(), account.options()).await.unwrap();
        assert_eq!(history.source_id(), "redis_memory");
        let mut providers = Providers::default();
        providers.push(history).unwrap();
        let (agent, mut session) = (NamedAgent::new("a"), AgentSession::with_id("s"));
        for (token, before) in [("run-1", 1), ("run-2", 3)] {
            let mut run = SessionContext::new(&session, token, vec![Message::user("Hi")]);
            providers.before_run(&agent, &mut session, &mut run).await.unwrap();
            assert_eq!(run.prompt_messages().count(), before);
            let mut run = run.with_response(AgentResponse::new(vec![Message::assistant("Hello")]));
            providers.after_run(&agent, &mut session, &mut run).await.unwrap();
        }
    });
}
