//! The version with the commit that the program is built from, if it is known.

use std::fs;
use std::path::Path;
use std::process::Command;

fn main() {
    let version = env!("CARGO_PKG_VERSION");
    let version = match commit() {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_owned(),
    };
    println!("cargo::rustc-env=EPITOME_VERSION={version}");
    println!("cargo::rerun-if-changed=build.rs");
}

/// The commit of this repository; of a package, the commit that Cargo has noted when it was packed.
fn commit() -> Option<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let noted = fs::read_to_string(folder.join(".cargo_vcs_info.json"));
    let hash = match noted {
        Ok(noted) => noted.split_once("\"sha1\": \"")?.1.split('"').next()?.to_owned(),
        Err(_) => {
            let repository = folder.parent()?;
            // A folder of sources within the repository of somebody else has another commit.
            if !repository.join(".git").exists() {
                return None;
            }
            let log = git(repository, &["rev-parse", "--git-path", "logs/HEAD"])?;
            let log = repository.join(log);
            // Cargo takes a file that is missing for one that changes all the time.
            if log.exists() {
                println!("cargo::rerun-if-changed={}", log.display());
            }
            git(repository, &["rev-parse", "HEAD"])?
        }
    };
    Some(hash.get(..10)?.to_owned())
}

fn git(folder: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git").env_remove("GIT_DIR").current_dir(folder).args(args).output().ok()?;
    let said = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(said.trim().to_owned())
}
