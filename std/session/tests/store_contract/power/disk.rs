//! A simulated disk: it holds all durable data, and any part of the rest.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::trace::Event;

/// Number of bytes that a drive writes at once.
const SECTOR_BYTES: usize = 512;

/// The top folder of a disk.
const ROOT: usize = 0;

/// Files and folders, with their durable content and the changes since then.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    nodes: Vec<Node>,
}

#[derive(Debug, Clone)]
enum Node {
    File {
        durable: Vec<u8>,
        pending: Vec<Change>,
    },
    /// Each change is one step: a rename removes one name and sets another.
    Folder {
        durable: Names,
        pending: Vec<Vec<(OsString, Option<usize>)>>,
    },
}

type Names = BTreeMap<OsString, usize>;

/// A change of a file.
#[derive(Debug, Clone)]
enum Change {
    Write { at: usize, data: Vec<u8> },
    Resize(usize),
}

/// The loss of changes that were not made durable; the other changes are on the disk after all.
#[derive(Debug, Clone, Copy)]
pub(super) enum Loss {
    Nothing,
    Everything,
    /// Some changes, selected by this number; of a write the first sectors stay.
    Some(u64),
}

impl Disk {
    /// An empty folder.
    pub(super) fn new() -> Self {
        Self { nodes: vec![Node::Folder { durable: Names::new(), pending: Vec::new() }] }
    }

    /// Applies an event of a process.
    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::Create(path) => self.make(path, Node::File { durable: Vec::new(), pending: Vec::new() }),
            Event::MakeFolder(path) => {
                self.make(path, Node::Folder { durable: Names::new(), pending: Vec::new() });
            }
            Event::Write { path, at, data } => {
                self.change(path, Change::Write { at: *at, data: data.clone() });
            }
            Event::Resize(path, len) => self.change(path, Change::Resize(*len)),
            Event::Sync(path) => {
                let at = self.find(path).unwrap();
                let found = &mut self.nodes[at];
                match found {
                    Node::File { durable, pending } => pending.drain(..).for_each(|it| it.apply(durable)),
                    Node::Folder { durable, pending } => pending.drain(..).for_each(|it| rename(durable, it)),
                }
            }
            Event::Rename(from, to) => {
                assert_eq!(from.parent(), to.parent());
                let moved = self.find(from).unwrap();
                self.name(to, vec![(name(from), None), (name(to), Some(moved))]);
            }
            Event::Remove(path) => self.name(path, vec![(name(path), None)]),
            Event::Said(_) => {}
        }
    }

    fn make(&mut self, path: &Path, node: Node) {
        if self.find(path).is_none() {
            self.nodes.push(node);
            let made = self.nodes.len() - 1;
            self.name(path, vec![(name(path), Some(made))]);
        }
    }

    fn change(&mut self, path: &Path, change: Change) {
        let at = self.find(path).unwrap();
        let Node::File { pending, .. } = &mut self.nodes[at] else { panic!("{path:?} is no file") };
        pending.push(change);
    }

    fn name(&mut self, path: &Path, names: Vec<(OsString, Option<usize>)>) {
        let at = self.find(path.parent().unwrap()).unwrap();
        let Node::Folder { pending, .. } = &mut self.nodes[at] else { panic!("{path:?} is in no folder") };
        pending.push(names);
    }

    /// The current file or folder at this path.
    fn find(&self, path: &Path) -> Option<usize> {
        path.iter().try_fold(ROOT, |at, name| self.names(at, Loss::Nothing)?.get(name).copied())
    }

    /// Creates in `folder` the content of the disk after a loss.
    pub(super) fn write(&self, folder: &Path, loss: Loss) {
        self.write_folder(ROOT, folder, loss);
    }

    fn write_folder(&self, at: usize, path: &Path, loss: Loss) {
        for (name, node) in self.names(at, loss).unwrap() {
            let path = path.join(name);
            match &self.nodes[node] {
                Node::Folder { .. } => {
                    fs::create_dir(&path).unwrap();
                    self.write_folder(node, &path, loss);
                }
                Node::File { durable, pending } => {
                    let mut data = durable.clone();
                    let mut chance = Chance::new(loss, node);
                    pending.iter().for_each(|change| change.apply_some(&mut data, &mut chance));
                    fs::write(path, data).unwrap();
                }
            }
        }
    }

    fn names(&self, at: usize, loss: Loss) -> Option<Names> {
        let Node::Folder { durable, pending } = &self.nodes[at] else { return None };
        let (mut names, mut chance) = (durable.clone(), Chance::new(loss, at));
        let kept = pending.iter().filter(|_| chance.keeps());
        kept.for_each(|change| rename(&mut names, change.clone()));
        Some(names)
    }
}

impl Change {
    fn apply(&self, data: &mut Vec<u8>) {
        match self {
            Self::Resize(len) => data.resize(*len, 0),
            Self::Write { at, data: written } => {
                data.resize(data.len().max(at + written.len()), 0);
                data[*at..at + written.len()].copy_from_slice(written);
            }
        }
    }

    /// Applies a part of the change: of a write the first sectors, followed by nothing or by zeros.
    fn apply_some(&self, data: &mut Vec<u8>, chance: &mut Chance) {
        let Self::Write { at, data: written } = self else {
            return if chance.keeps() {
                self.apply(data)
            };
        };
        let mut kept = 0;
        while kept < written.len() && chance.keeps() {
            kept = written.len().min(kept + SECTOR_BYTES - (at + kept) % SECTOR_BYTES);
        }
        if kept > 0 {
            Self::Write { at: *at, data: written[..kept].to_vec() }.apply(data);
        }
        if chance.keeps() {
            data.resize(data.len().max(at + written.len()), 0);
        }
    }
}

fn rename(names: &mut Names, change: Vec<(OsString, Option<usize>)>) {
    for (name, node) in change {
        match node {
            Some(node) => drop(names.insert(name, node)),
            None => drop(names.remove(&name)),
        }
    }
}

fn name(path: &Path) -> OsString {
    path.file_name().unwrap().to_owned()
}

/// Decides for each change if it is kept: the same decision for the same loss and node.
struct Chance {
    loss: Loss,
    state: u64,
}

impl Chance {
    fn new(loss: Loss, node: usize) -> Self {
        let seed = if let Loss::Some(seed) = loss { seed } else { 0 };
        Self { loss, state: seed.wrapping_mul(1_000_003).wrapping_add(node as u64) }
    }

    fn keeps(&mut self) -> bool {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        match self.loss {
            Loss::Nothing => true,
            Loss::Everything => false,
            Loss::Some(_) => (mixed ^ (mixed >> 31)).is_multiple_of(2),
        }
    }
}
