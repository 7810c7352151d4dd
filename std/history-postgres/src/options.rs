//! The tables that a store uses, and the settings of its connections.

use epitome_history::RemoteOptions;
use epitome_history::StoreError;
use epitome_history::rules::invalid;

/// The connection settings of a [`PostgresStore`](super::PostgresStore), and the names of its tables.
///
/// ```
/// use epitome_postgres::{Migrate, PostgresOptions};
///
/// let options = PostgresOptions::default().with_schema("agents").with_prefix("support_").with_migrate(Migrate::Explicitly);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PostgresOptions {
    /// Time limits, retries, and the number of connections.
    pub remote: RemoteOptions,
    /// The schema of the tables. `None` for the default schema of the user.
    pub schema: Option<String>,
    /// The prefix of the tables' names: lower-case letters, digits and `_`, not beginning with a digit, at most 40 of
    /// them. `epitome_` by default.
    pub prefix: String,
    /// When the tables are created or updated.
    pub migrate: Migrate,
    /// Certificates of trusted authorities for the server's certificate, in PEM, in addition to those of the system.
    pub root_certificates: Vec<u8>,
}

/// When the tables are created or updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Migrate {
    /// When the store is opened. The user needs the right to create tables if they are missing or outdated.
    #[default]
    OnOpen,
    /// When a user with that right calls [`PostgresStore::migrate`](super::PostgresStore::migrate). Operations are
    /// refused until then.
    Explicitly,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            remote: RemoteOptions::default(),
            schema: None,
            prefix: "epitome_".into(),
            migrate: Migrate::default(),
            root_certificates: Vec::new(),
        }
    }
}

impl PostgresOptions {
    /// Sets time limits, retries and the number of connections.
    #[must_use]
    pub const fn with_remote(mut self, remote: RemoteOptions) -> Self {
        self.remote = remote;
        self
    }

    /// Sets the schema of the tables. It is created if it does not exist.
    #[must_use]
    pub fn with_schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// Sets the prefix of the tables' names.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets when the tables are created or updated.
    #[must_use]
    pub const fn with_migrate(mut self, migrate: Migrate) -> Self {
        self.migrate = migrate;
        self
    }

    /// Adds certificates of authorities that may sign the server's certificate, in PEM, to those of the system.
    #[must_use]
    pub fn with_root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.root_certificates = pem.into();
        self
    }
}

/// The names of a store's tables.
#[derive(Debug)]
pub(super) struct Names {
    schema: Option<String>,
    prefix: String,
    /// The schema, quoted, and the prefix.
    table: String,
}

impl Names {
    pub(super) fn new(options: &PostgresOptions) -> Result<Self, StoreError> {
        let prefix = &*options.prefix;
        let letters =
            prefix.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !letters
            || prefix.is_empty()
            || prefix.len() > PREFIX_BYTES_MAX
            || prefix.starts_with(|c: char| c.is_ascii_digit())
        {
            return Err(invalid(
                "open: a prefix is 1 to 40 lower-case letters, digits and `_`, with no digit first",
            ));
        }
        let schema = options.schema.clone();
        if schema
            .as_ref()
            .is_some_and(|schema| schema.is_empty() || schema.len() > NAME_BYTES_MAX || schema.contains('\0'))
        {
            return Err(invalid("open: a schema's name is 1 to 63 bytes, none of them NUL"));
        }
        let table = match &schema {
            Some(schema) => format!("{}.{prefix}", quoted(schema)),
            None => prefix.to_owned(),
        };
        Ok(Self { schema, prefix: prefix.to_owned(), table })
    }

    pub(super) fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// `sql` with the names in the place of their placeholders.
    pub(super) fn complete(&self, sql: &str) -> String {
        // The schema is inserted last, because its name may contain any character.
        sql.replace('#', &self.prefix).replace('@', &self.table)
    }
}

/// `name` as a quoted identifier, with any characters.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Names in Postgres have at most 63 bytes. The longest suffix of a table or index needs 14 of them.
const PREFIX_BYTES_MAX: usize = 40;

const NAME_BYTES_MAX: usize = 63;

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(options: &PostgresOptions) -> Result<String, StoreError> {
        Names::new(options).map(|names| names.complete("@sessions #sessions_place"))
    }

    #[test]
    fn names_are_completed_and_schemas_quoted() {
        let options = PostgresOptions::default();
        assert_eq!(complete(&options).unwrap(), "epitome_sessions epitome_sessions_place");
        let options = options.with_schema("Us\"er#; @--").with_prefix("a_1");
        assert_eq!(complete(&options).unwrap(), "\"Us\"\"er#; @--\".a_1sessions a_1sessions_place");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let long = "a".repeat(41);
        for prefix in ["", "1a", "A", "a-b", "a b", "a@", "a#", "a\"", "a;", "ä", &long] {
            assert!(complete(&PostgresOptions::default().with_prefix(prefix)).is_err(), "{prefix}");
        }
        let long = "a".repeat(64);
        for schema in ["", "a\0", &long] {
            assert!(complete(&PostgresOptions::default().with_schema(schema)).is_err(), "{schema}");
        }
    }
}
