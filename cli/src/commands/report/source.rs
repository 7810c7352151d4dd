//! The sources of a report: files, folders of files, or the sessions of a store.

use core::ops::ControlFlow;
use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use epitome::wire::Format;

use super::LeftOut;
use crate::args::{From, InputArgs, OneSessionArgs, PartArgs, ReportArgs, StoreArgs};
use crate::commands::session::store::{self, Access, Store};
use crate::commands::session::{list, raw};
use crate::failure::{Failure, Result, code};
use crate::output::Output;
use crate::transcript::{Input, files};

/// The sources of a report, and those that are left out.
pub(super) struct Sources {
    pub(super) found: Vec<Source>,
    pub(super) left_out: Vec<LeftOut>,
}

/// A file that is, or may be, a transcript; or a stored session.
pub(super) enum Source {
    File {
        path: PathBuf,
        /// Whether the user named the file itself, and not its folder.
        is_named: bool,
    },
    Session {
        store: Store,
        args: OneSessionArgs,
        is_named: bool,
    },
}

/// Extensions of the names of transcripts.
pub(super) const ENDS: [&str; 4] = ["json", "jsonl", "ndjson", "traj"];

impl Source {
    pub(super) const fn is_named(&self) -> bool {
        match self {
            Self::File { is_named, .. } | Self::Session { is_named, .. } => *is_named,
        }
    }

    pub(super) fn place(&self) -> String {
        match self {
            Self::File { path, .. } => path.display().to_string(),
            Self::Session { args, .. } => {
                format!("session {:?} of {}", args.session, store::shown(&args.store))
            }
        }
    }

    pub(super) fn input_args(&self, part: &PartArgs) -> InputArgs {
        match self {
            Self::File { path, .. } => part.of(path),
            Self::Session { .. } => {
                let from = From(Some(Format::OpenaiChat));
                PartArgs { from, at: None, each: false, leaf: None }.of(Path::new(&self.place()))
            }
        }
    }

    /// Opens the source. A session opens as all messages in its log, in the form of Chat Completions.
    pub(super) fn open(&self, input_args: &InputArgs) -> Result<Input> {
        let Self::Session { store, args, .. } = self else { return Input::open(input_args) };
        let mut messages = Vec::new();
        store::for_each_page(store, args, |page| {
            for logged in page {
                messages.push(raw(&logged.entry.message)?);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let text =
            serde_json::to_vec(&messages).map_err(|error| Failure::new(code::IO, error.to_string()))?;
        Input::from_bytes(PathBuf::from(self.place()), text, input_args)
    }
}

impl Sources {
    /// Finds the files and sessions that were named, and those in the named folders and stores, by name. Links in folders are not followed.
    pub(super) fn find(args: &ReportArgs) -> Result<Self> {
        let mut sources = Self { found: Vec::new(), left_out: Vec::new() };
        if let Some(store) = args.store.given() {
            if !args.files.is_empty() {
                return Err(Failure::input(
                    "--store: a report is about files or about the sessions of a store",
                ));
            }
            let PartArgs { from, at, each, leaf } = &args.part;
            if from.0.is_some() || at.is_some() || *each || leaf.is_some() {
                return Err(Failure::input(
                    "--from, --at, --each, --leaf: these are for files, not for --store",
                ));
            }
            sources.add_sessions(&store, args.session.as_deref())?;
        }
        let given =
            if args.store.given().is_some() { Cow::Borrowed(&*args.files) } else { files(&args.files)? };
        for path in &*given {
            match fs::metadata(path).is_ok_and(|about| about.is_dir()) {
                true => sources.add_folder(path).map_err(|error| Failure::io(path, &error))?,
                false => sources.found.push(Source::File { path: path.clone(), is_named: true }),
            }
        }
        Ok(sources)
    }

    fn add_sessions(&mut self, args: &StoreArgs, only: Option<&str>) -> Result<()> {
        let store = store::open(args, Access::Read)?;
        let names = match only {
            Some(name) => vec![name.to_owned()],
            None => list::rows(&store, args)?.into_iter().map(|row| row.session).collect(),
        };
        self.found.extend(names.into_iter().map(|session| Source::Session {
            store: store.clone(),
            args: OneSessionArgs { store: args.clone(), session, json: false },
            is_named: only.is_some(),
        }));
        Ok(())
    }

    fn add_folder(&mut self, folder: &Path) -> io::Result<()> {
        let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<io::Result<_>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, kind) = (entry.path(), entry.file_type()?);
            let end = path.extension().map(|end| end.to_string_lossy().to_lowercase());
            if kind.is_dir() {
                if let Err(error) = self.add_folder(&path) {
                    self.left_out.push(LeftOut::new(path.display().to_string(), &error.to_string()));
                }
            } else if kind.is_file() && end.is_some_and(|end| ENDS.contains(&&*end)) {
                self.found.push(Source::File { path, is_named: false });
            }
        }
        Ok(())
    }

    /// The output of the page.
    ///
    /// # Errors
    ///
    /// The path is that of a transcript of the report, or of a file of its store.
    pub(super) fn output<'a>(&self, args: &'a ReportArgs) -> Result<Output<'a>> {
        let output = &args.output;
        if let Some(args) = args.store.given() {
            store::check_outside(&args, output)?;
        }
        let place = fs::canonicalize(output).ok();
        let is_read = |source: &Source| match source {
            Source::File { path, .. } => place.is_some() && fs::canonicalize(path).ok() == place,
            Source::Session { .. } => false,
        };
        match self.found.iter().any(is_read) {
            true => Err(Failure::input(format!(
                "-o {}: this is what the report is about: name another file",
                output.display()
            ))),
            false => Ok(Output { path: output, force: args.force }),
        }
    }
}
