//! The keys of encrypted stores.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::path::Path;

use epitome::history::StoreKey;

use crate::args::{CopyKeyArgs, StoreArgs};
use crate::failure::{Failure, Result};
use crate::settings::key_file_of;

/// Environment variable of the key, if no file is given.
const KEY: &str = "EPITOME_KEY";

/// Maximum number of bytes of the file that are read: the digits, and white space around them.
const KEY_FILE_BYTES_MAX: u64 = 1_024;

/// The key of the store, if it has one.
pub(super) fn of(args: &StoreArgs) -> Result<Option<StoreKey>> {
    if let Some(path) = &args.key_file {
        return in_file("--key-file", path).map(Some);
    }
    // An empty variable is a mistake and is refused: a store without a key is not protected.
    let digits = std::env::var_os(KEY).map(|digits| parse(KEY, digits.as_encoded_bytes()));
    let in_settings = || key_file_of(&args.store).map(|path| in_file("key-file in the settings file", path));
    digits.or_else(in_settings).transpose()
}

/// The key of the target store of a copy from a store with the key `from`.
pub(super) fn of_copy(
    args: &CopyKeyArgs,
    from: Option<StoreKey>,
    elsewhere: bool,
) -> Result<Option<StoreKey>> {
    match (&args.to_key_file, from) {
        (Some(path), _) => in_file("--to-key-file", path).map(Some),
        (None, Some(_)) if args.plain => Ok(None),
        (None, Some(_)) if elsewhere => Err(Failure::input(
            "--to: this store is encrypted, is the other one? --to-key-file FILE has its key; --plain says that it is not",
        )),
        (None, from) => Ok(from),
    }
}

fn in_file(option: &str, path: &Path) -> Result<StoreKey> {
    let mut digits = Vec::new();
    let read = File::open(path).and_then(|file| {
        let others = others_may_read(&file.metadata()?);
        file.take(KEY_FILE_BYTES_MAX).read_to_end(&mut digits)?;
        Ok(others)
    });
    if read.map_err(|error| Failure::io(path, &error).during(option))? {
        let path = path.display();
        let why = format!(
            "{option}: {path} can be read by others than its owner; chmod 600 {path}, and make a new key if others had it"
        );
        return Err(Failure::input(why));
    }
    parse(&format!("{option}: {}", path.display()), &digits)
}

/// Whether other users may read the key file. A pipe is read once, by this program alone.
#[cfg(unix)]
fn others_may_read(file: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    file.is_file() && file.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn others_may_read(_: &Metadata) -> bool {
    false
}

fn parse(place: &str, digits: &[u8]) -> Result<StoreKey> {
    StoreKey::parse(&String::from_utf8_lossy(digits)).map_err(|error| Failure::from(error).during(place))
}
