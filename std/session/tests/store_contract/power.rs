//! A loss of power at every call: a process is traced, and its calls are repeated on a simulated disk that forgets all
//! changes that were not made durable.

mod disk;
mod trace;

use std::path::Path;
use std::process::Command;

use self::disk::{Disk, Loss};
use self::trace::Event;
use crate::steps::{self, STEPS};

/// Losses of the changes that were not durable when the power failed.
const LOSSES: [Loss; 4] = [Loss::Everything, Loss::Nothing, Loss::Some(1), Loss::Some(2)];

/// A kind of store, and its path in a folder.
#[derive(Clone, Copy)]
struct Place {
    scheme: &'static str,
    path: &'static str,
}

impl Place {
    fn url(self, folder: &Path) -> String {
        format!("{}:{}", self.scheme, folder.join(self.path).display())
    }

    /// The calls of a process that performs the steps from `from` on, in a folder like `disk`.
    fn traced(self, disk: &Disk, from: usize) -> Vec<Event> {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("root");
        std::fs::create_dir(&root).unwrap();
        disk.write(&root, Loss::Nothing);
        let log = folder.path().join("log");
        let mut strace = Command::new("strace");
        strace.args(["-f", "-y", "-xx", "-qq", "-s", "16777216", "-e", trace::CALLS, "-e", "signal=none"]);
        strace.arg("-o").arg(&log);
        let output = steps::child(strace, &self.url(&root), from);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
        trace::events(&std::fs::read_to_string(log).unwrap(), &root)
    }

    /// Loses power in every way, and opens the store on the remaining data.
    fn survives(self, disk: &Disk, done: usize) {
        for loss in LOSSES {
            let folder = tempfile::tempdir().unwrap();
            disk.write(folder.path(), loss);
            let went_on = std::panic::catch_unwind(|| steps::goes_on(&self.url(folder.path()), done));
            assert!(went_on.is_ok(), "{}: power was lost after step {done}, {loss:?}", self.scheme);
        }
    }
}

/// Power is lost at each call that makes data durable or gives it another name, and after each acknowledgement. It is
/// also lost after the first acknowledgement of a process that continues after another one was killed.
fn loses_nothing(place: Place) {
    if !steps::can_trace() {
        return;
    }
    let (mut disk, mut done, mut killed) = (Disk::new(), 0, 0);
    for event in place.traced(&disk, 0) {
        match &event {
            Event::Said(said) => {
                if let Some(acknowledged) = acknowledged(said) {
                    done = acknowledged;
                    place.survives(&disk, done);
                }
            }
            Event::Sync(_) | Event::Rename(..) | Event::Remove(_) if done < STEPS => {
                place.survives(&disk, done);
                killed += 1;
                is_repeated(place, disk.clone(), done);
            }
            _ => {}
        }
        disk.apply(&event);
    }
    assert_eq!(done, STEPS);
    println!("{}: {killed} calls at which power was lost or the process killed", place.scheme);
    assert!(killed > STEPS);
}

/// A process was killed during the step after `done`. Another process performs this step, perhaps a second time.
fn is_repeated(place: Place, mut disk: Disk, done: usize) {
    for event in place.traced(&disk, done) {
        disk.apply(&event);
        if let Event::Said(said) = event
            && let Some(done) = acknowledged(&said)
        {
            return place.survives(&disk, done);
        }
    }
    panic!("the second process has acknowledged nothing");
}

fn acknowledged(said: &str) -> Option<usize> {
    said.strip_prefix("acknowledged ")?.parse().ok()
}

#[test]
fn a_directory_of_files_keeps_what_was_acknowledged_through_a_loss_of_power() {
    loses_nothing(Place { scheme: "jsonl", path: "made/too/store" });
}

#[cfg(feature = "sqlite")]
#[test]
fn a_database_file_keeps_what_was_acknowledged_through_a_loss_of_power() {
    loses_nothing(Place { scheme: "sqlite", path: "s.db" });
}
