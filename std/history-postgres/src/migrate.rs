//! Creation of the tables, and the check of their version.

use epitome_history::StoreError;
use epitome_history::rules::invalid;

use sha2::{Digest, Sha256};
use tokio_postgres::Row;

use super::failure::Failure;
use super::job::Job;
use super::lease::{Access, Lease};
use super::options::quoted;
use super::{schema, sql};

/// Creates the tables if there are none.
#[derive(Debug)]
pub(super) struct MigrateJob;

impl Job for MigrateJob {
    const NEEDS_TABLES: bool = false;
    type Answer = ();

    fn name(&self) -> &'static str {
        "migrate"
    }

    async fn run(&self, lease: &Lease<'_>) -> Result<(), Failure> {
        lease.begin(Access::Write).await?;
        // A user without the right to create tables may open a store that already has them.
        if version(lease).await? == schema::VERSION {
            return lease.commit().await;
        }
        let [encoding, lock] = lease.prepare([sql::ENCODING, sql::LOCK_MIGRATIONS]).await?;
        let encoding = lease.row(&encoding, &[]).await?.map(|row| row.try_get(0)).transpose()?;
        if encoding.is_some_and(|encoding: String| encoding != "UTF8") {
            let context = "migrate: the database is not one of encoding UTF8; name another, or create one";
            return Err(invalid(context).into());
        }
        lease.rows(&lock, &[&lock_number()]).await?;
        make_schema(lease).await?;
        lease.exact(&lease.names().complete(schema::MIGRATIONS)).await?;
        make_tables(lease).await?;
        lease.commit().await
    }
}

/// Checks that the server accepts the user, and that no other version has written the tables.
#[derive(Debug)]
pub(super) struct LookJob;

impl Job for LookJob {
    const NEEDS_TABLES: bool = false;
    type Answer = ();

    fn name(&self) -> &'static str {
        "open"
    }

    async fn run(&self, lease: &Lease<'_>) -> Result<(), Failure> {
        lease.begin(Access::Read).await?;
        version(lease).await?;
        lease.commit().await
    }
}

/// Fails if the tables have another version, or do not exist.
pub(super) async fn check(lease: &Lease<'_>) -> Result<(), Failure> {
    lease.begin(Access::Read).await?;
    let found = version(lease).await?;
    lease.commit().await?;
    match found {
        0 => Err(invalid("open: the tables are missing; call `migrate`").into()),
        _ => Ok(()),
    }
}

/// The version of the tables, which must be that of this release; 0 if there are none.
async fn version(lease: &Lease<'_>) -> Result<i64, Failure> {
    let [has] = lease.prepare([sql::HAS_MIGRATIONS]).await?;
    let first = |row: Option<Row>| -> Result<bool, Failure> {
        Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or(false))
    };
    if !first(lease.row(&has, &[&lease.names().complete("@migrations")]).await?)? {
        return Ok(0);
    }
    let [version] = lease.prepare([sql::VERSION]).await?;
    let row = lease.row(&version, &[]).await?;
    let found: Option<i64> = row.map(|row| row.try_get(0)).transpose()?.flatten();
    match found.unwrap_or(0) {
        newer if newer > schema::VERSION => Err(invalid(format!(
            "open: written by a newer version: schema {newer}, this one reads up to {}",
            schema::VERSION
        ))
        .into()),
        found @ (0 | schema::VERSION) => Ok(found),
        older => Err(of_older(older).into()),
    }
}

async fn make_schema(lease: &Lease<'_>) -> Result<(), Failure> {
    let Some(name) = lease.names().schema() else { return Ok(()) };
    let [has] = lease.prepare([sql::HAS_SCHEMA]).await?;
    if lease.row(&has, &[&name]).await?.is_none() {
        lease.exact(&format!("CREATE SCHEMA {}", quoted(name))).await?;
    }
    Ok(())
}

async fn make_tables(lease: &Lease<'_>) -> Result<(), Failure> {
    // Another process may have created the tables meanwhile.
    if version(lease).await? == schema::VERSION {
        return Ok(());
    }
    lease.exact(&lease.names().complete(schema::TABLES)).await?;
    let [insert] = lease.prepare([sql::NEW_VERSION]).await?;
    lease.execute(&insert, &[&schema::VERSION]).await?;
    Ok(())
}

fn of_older(version: i64) -> StoreError {
    invalid(format!(
        "open: written by an older version: schema {version}, this one has {}; export its sessions with that version, \
         and import them into other tables",
        schema::VERSION
    ))
}

/// One lock for all migrations in a database, independent of the table names, because several migrations may create the
/// same schema.
fn lock_number() -> i64 {
    let digest: [u8; 32] = Sha256::digest("epitome migrations").into();
    digest.first_chunk().map_or(0, |first| i64::from_le_bytes(*first))
}
