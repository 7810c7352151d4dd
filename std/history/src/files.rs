//! Small files that are replaced as a whole, with names made from ids of any text.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::thread;

use futures::channel::oneshot;
use sha2::{Digest, Sha256};

/// Maximum length in bytes of an id that is used as a file name. With suffixes and temporary names it stays within the
/// 255 bytes of file systems.
const NAME_BYTES_MAX: usize = 128;

/// Maximum number of characters of an id in a file name, where the id itself cannot be the name.
const SLUG_CHARS_MAX: usize = 32;

/// The file name, without its suffix, for `id`. An id that is a plain name on every file system is the file name. Any
/// other id becomes `~`, its plain characters, and 16 bytes of its SHA-256. Different ids never share a file name, even
/// on a file system that ignores case or Unicode composition.
pub fn file_stem(id: &str) -> String {
    if is_plain(id) {
        return id.to_owned();
    }
    let plain = id.chars().filter(|char| char.is_ascii_alphanumeric()).take(SLUG_CHARS_MAX);
    let slug: String = plain.map(|char| char.to_ascii_lowercase()).collect();
    let digest = hex(&Sha256::digest(id.as_bytes()));
    format!("~{slug}-{}", digest.get(..32).unwrap_or_default())
}

/// The bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_plain(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    // Reserved device names of Windows cannot be file names.
    let stem = id.trim_end_matches(|char: char| char.is_ascii_digit());
    let device = matches!(id, "con" | "prn" | "aux" | "nul") || matches!(stem, "com" | "lpt");
    !id.is_empty() && id.len() <= NAME_BYTES_MAX && !device && id.bytes().all(plain)
}

/// Replaces the file at `path` with `text`, in one step. A reader sees the old file or the new one, also after a crash.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix(".tmp-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_folder(folder)
}

/// The identity of a file among all files that exist at the time. On systems without such numbers, all files have the
/// same identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId(u64, u64);

impl FileId {
    #[cfg(unix)]
    pub fn of(metadata: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;

        Self(metadata.dev(), metadata.ino())
    }

    #[cfg(not(unix))]
    pub const fn of(_: &fs::Metadata) -> Self {
        Self(0, 0)
    }

    /// The id of the file at `path`, if there is one.
    pub fn at(path: &Path) -> io::Result<Option<Self>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(Self::of(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Makes the names in a folder durable, where the system supports it.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Runs blocking work on its own thread, so that no executor waits for a disk. The work completes even if the caller
/// drops the future.
pub async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (done, answer) = oneshot::channel();
    thread::Builder::new().name("epitome-files".to_owned()).spawn(move || {
        // The caller may have dropped the future.
        let _ = done.send(work());
    })?;
    answer.await.map_err(|_| io::Error::other("the thread that does it has panicked"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_id_has_a_name_of_its_own_that_is_one_plain_file() {
        let long = "x".repeat(5_000);
        let longer = "x".repeat(5_001);
        let ids = [
            "",
            ".",
            "..",
            "/",
            "../../etc/passwd",
            "a/b",
            "a\\b",
            "C:\\x",
            "nul",
            "com1",
            "lpt9",
            "con.txt",
            "a.",
            "a ",
            "a\0b",
            "a\nb",
            "session-1",
            "Session-1",
            "SESSION-1",
            "caf\u{e9}",
            "cafe\u{301}",
            "\u{430}",
            "a",
            "-",
            "~a",
            "a%2fb",
            ".hidden",
            "a:b",
            "*",
            "\u{202e}x",
            &long,
            &longer,
        ];
        let names: HashSet<String> = ids.iter().map(|id| file_stem(id).to_lowercase()).collect();
        assert_eq!(names.len(), ids.len());
        for name in &names {
            assert!(name.len() <= NAME_BYTES_MAX && !name.is_empty());
            assert!(
                name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_~".contains(&byte)),
                "{name:?}"
            );
        }
        assert_eq!(file_stem("session-1"), "session-1");
        assert_eq!(file_stem("nul"), format!("~nul-{}", &file_stem("nul")[5..]));
    }
}
