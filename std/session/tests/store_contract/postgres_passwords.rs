//! Passwords from a function, and passwords that change while a store is open.

use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex};

use epitome_std::history::StoreErrorKind::{self, Invalid, Unavailable};
use epitome_std::history::{
    HistoryStore as _, Migrate, Password, PostgresOptions, PostgresServer, PostgresStore, RemoteOptions,
    StoreError,
};
use futures::executor::block_on;
use uuid::Uuid;

use crate::postgres_server::{Line, Tables, execute, tables, variable};
use crate::remote::patient;
use crate::support::{append, fill, keys, session, user};

/// A user of the server whose password changes.
struct Account {
    tables: Tables,
    name: String,
    password: Arc<Mutex<String>>,
    asked: Arc<AtomicUsize>,
}

impl Account {
    fn new() -> Option<Self> {
        let account = Self {
            tables: tables()?,
            // A name that a URL can hold only in an escaped form.
            name: format!("epitome-{}@example.com", Uuid::new_v4().simple()),
            password: Arc::default(),
            asked: Arc::default(),
        };
        fill(&account.tables.open(), 1);
        let (schema, name) = (&account.tables.schema, &account.name);
        account.admin(&format!(
            "CREATE ROLE \"{name}\" LOGIN; GRANT USAGE ON SCHEMA \"{schema}\" TO \"{name}\";
            GRANT ALL ON ALL TABLES IN SCHEMA \"{schema}\" TO \"{name}\";
            GRANT ALL ON ALL SEQUENCES IN SCHEMA \"{schema}\" TO \"{name}\""
        ));
        account.rotate("hunter1");
        Some(account)
    }

    fn admin(&self, sql: &str) {
        execute(&self.tables.url, sql);
    }

    /// Gives the user another password, and ends the user's connections.
    fn rotate(&self, password: &str) {
        self.admin(&format!("ALTER ROLE \"{}\" PASSWORD '{password}'", self.name));
        self.kill();
        self.knows(password);
    }

    fn kill(&self) {
        let name = &self.name;
        self.admin(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{name}'"
        ));
    }

    /// From now on the function returns this password.
    fn knows(&self, password: &str) {
        password.clone_into(&mut self.password.lock().unwrap());
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn server(&self, url: &str) -> PostgresServer {
        let (password, asked) = (Arc::clone(&self.password), Arc::clone(&self.asked));
        at(url).with_user(&*self.name).with_password(Password::from_fn(move || {
            asked.fetch_add(1, Ordering::SeqCst);
            let password = password.lock().unwrap().clone();
            Box::pin(async move { Ok(password.into()) })
        }))
    }

    fn options(&self) -> PostgresOptions {
        let one = patient().with_connections_max(NonZeroUsize::MIN);
        self.tables.options().with_migrate(Migrate::Explicitly).with_remote(one)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.kill();
        let name = &self.name;
        self.admin(&format!("DROP OWNED BY \"{name}\"; DROP ROLE \"{name}\""));
    }
}

/// The server of this URL, without its user and password.
fn at(url: &str) -> PostgresServer {
    let (_, place) = url.split_once('@').unwrap();
    PostgresServer::from_url(&format!("postgres://{place}")).unwrap()
}

fn opened(server: &PostgresServer, options: PostgresOptions) -> StoreError {
    let error = PostgresStore::open_at(server, options).unwrap_err();
    assert!(!format!("{error} {error:?} {server:?}").contains("hunter"), "{error:?}");
    error
}

#[track_caller]
fn is(error: &StoreError, kind: StoreErrorKind, says: &str) {
    assert!(error.kind() == kind && error.to_string().contains(says), "{error}");
}

#[test]
fn a_password_that_changes_is_asked_for_at_each_new_connection() {
    let Some(account) = Account::new() else { return };
    let store = PostgresStore::open_at(&account.server(&account.tables.url), account.options()).unwrap();
    for seq in 1..5 {
        append(&store, &format!("t{seq}"), seq, &[user(seq)]).unwrap();
    }
    assert_eq!(account.asked(), 1, "once for one connection");
    account.rotate("hunter2");
    append(&store, "t5", 5, &[user(5)]).unwrap();
    assert_eq!(keys(&store), [0, 1, 2, 3, 4, 5]);
    assert_eq!(account.asked(), 2);
    // A password that the server does not know is refused, and requested again the next time.
    account.knows("hunter3");
    account.kill();
    let error = block_on(store.load(&session())).unwrap_err();
    is(&error, Invalid, "password");
    assert!(!format!("{error} {error:?} {store:?}").contains("hunter"), "{error:?}");
    account.rotate("hunter4");
    assert_eq!(keys(&store), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_password_is_asked_for_once_for_each_connection_of_the_pool() {
    let Some(account) = Account::new() else { return };
    let four = patient().with_connections_max(NonZeroUsize::new(4).unwrap());
    let line = Line::to(&account.tables.url);
    let store =
        PostgresStore::open_at(&account.server(&line.url), account.options().with_remote(four)).unwrap();
    let id = session();
    for _ in 0..3 {
        let loads = block_on(futures::future::join_all((0..8).map(|_| store.load(&id))));
        assert!(loads.iter().all(Result::is_ok), "{loads:?}");
    }
    assert!((2..=4).contains(&account.asked()), "{}", account.asked());
    assert_eq!(account.asked(), line.connections());
}

#[test]
fn a_token_goes_over_tls_where_the_url_says_so() {
    let Some(account) = Account::new() else { return };
    let Some(authority) = variable("EPITOME_TEST_POSTGRES_CA") else {
        eprintln!("skipped: EPITOME_TEST_POSTGRES_CA names no certificate");
        return;
    };
    let url = account.tables.url.replace("sslmode=disable", "sslmode=require");
    // A server without a trusted certificate gets no password.
    let once = account.options().with_remote(patient().with_retries(0));
    is(&opened(&account.server(&url), once.clone()), Invalid, "certificate");
    let trusting = once.with_root_certificates(std::fs::read(authority).unwrap());
    let store = PostgresStore::open_at(&account.server(&url), trusting).unwrap();
    assert_eq!(keys(&store), [0]);
    let encrypted = "SELECT 1 / count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl";
    account.admin(&format!("{encrypted} AND usename = '{}'", account.name));
}

#[test]
fn a_fixed_password_is_that_of_a_url_or_stands_in_its_place() {
    let Some(account) = Account::new() else { return };
    let encoded = account.name.replace('@', "%40");
    let by_url = |user: &str| {
        let (_, place) = account.tables.url.split_once('@').unwrap();
        PostgresServer::from_url(&format!("postgres://{user}@{place}")).unwrap()
    };
    for server in [
        by_url(&format!("{encoded}:hunter1")),
        by_url(&format!("{encoded}:hunter9")).with_password("hunter1"),
        by_url(&encoded).with_password("hunter1"),
        by_url("nobody:hunter9").with_user(&*account.name).with_password("hunter1"),
    ] {
        let store = PostgresStore::open_at(&server, account.options()).unwrap();
        assert!(!format!("{store:?} {server:?}").contains("hunter"), "{store:?} {server:?}");
    }
    let wrong = by_url(&encoded).with_password("hunter9");
    is(&opened(&wrong, account.options()), Invalid, "password");
    is(&opened(&by_url(&encoded), account.options()), Invalid, "wants a password");
}

#[test]
fn a_look_up_that_hangs_keeps_no_connection_from_the_next_attempt() {
    let Some(account) = Account::new() else { return };
    let (password, asked) = (Arc::clone(&account.password), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&asked);
    let hangs_once = Password::from_fn(move || {
        let password = password.lock().unwrap().clone();
        let is_first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        Box::pin(async move {
            if is_first {
                core::future::pending::<()>().await;
            }
            Ok(password.into())
        })
    });
    let server = at(&account.tables.url).with_user(&*account.name).with_password(hangs_once);
    // This is the only connection. The second attempt and the others allow for a busy machine.
    let remote = patient().with_timeout(Duration::from_secs(2)).with_retries(9);
    let remote = remote.with_connections_max(NonZeroUsize::MIN);
    let store = PostgresStore::open_at(&server, account.options().with_remote(remote)).unwrap();
    assert_eq!(keys(&store), [0]);
    assert!(asked.load(Ordering::SeqCst) >= 2);
}

#[test]
fn a_password_that_cannot_be_had_is_the_error_of_the_operation() {
    let Some(tables) = tables() else { return };
    let line = Line::to(&tables.url);
    let remote = patient().with_retries(2).with_retry_delay(Duration::from_millis(1));
    for (kind, times) in [(Unavailable, 3), (Invalid, 1), (StoreErrorKind::NotFound, 1)] {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let locked = Password::from_fn(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move { Err(StoreError::new(kind, "the vault is locked")) })
        });
        let error = opened(&at(&line.url).with_password(locked), tables.options().with_remote(remote));
        is(&error, kind, "the vault is locked");
        assert_eq!(asked.load(Ordering::SeqCst), times, "only what is unavailable is tried again");
    }
    // The time limit of an attempt includes the request for the password.
    let never = || Password::from_fn(|| Box::pin(core::future::pending()));
    let short = RemoteOptions::default().with_timeout(Duration::from_millis(50)).with_retries(1);
    let error = opened(&at(&line.url).with_password(never()), tables.options().with_remote(short));
    is(&error, Unavailable, "within 50ms");
    assert_eq!(line.connections(), 0, "no server is reached without a password");
}
