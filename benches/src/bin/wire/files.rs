//! Prints a row for every file of a folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use epitome::core::message::CallKind;
use epitome::core::{OpenCallTree, Profile, Validator};
use epitome::message::{Message, Part};
use epitome::wire::document::Pointer;
use epitome::wire::{
    ConversionLossKind, Format, ReadOptions, Transcript, WireError, convert, read, write_back,
};

use crate::TARGETS;

/// The results for a file, or for all lines of a file.
#[derive(Debug, Default)]
struct Row {
    formats: BTreeMap<&'static str, usize>,
    refused: Vec<String>,
    messages: usize,
    calls: usize,
    changed: usize,
    conversions: BTreeMap<&'static str, Conversions>,
}

#[derive(Debug, Default)]
struct Conversions {
    breaches: usize,
    failed: usize,
    losses: BTreeMap<ConversionLossKind, usize>,
}

pub(crate) fn run(folder: &Path) {
    println!(
        "| file | format | messages | calls | same text | {} |",
        TARGETS.map(Format::as_str).join(" | ")
    );
    println!("|---|---|---:|---:|---|{}", "---|".repeat(TARGETS.len()));
    let mut paths = Vec::new();
    list(folder, &mut paths);
    paths.sort();
    let mut all = Row::default();
    for path in paths {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
        let row = Row::of(&text);
        println!("| {name} | {} |", row.to_text());
        all.join(row);
    }
    println!("| **all** | {} |", all.to_text());
}

fn list(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            list(&path, paths);
        } else if path.extension().is_none_or(|end| end != "md") {
            paths.push(path);
        }
    }
}

impl Row {
    fn of(text: &str) -> Self {
        let mut row = Self::default();
        let whole = read(text, &ReadOptions::default());
        match whole {
            Ok(transcript) => row.add(&transcript, text),
            // A log of requests is read line by line, because its requests may be for several providers.
            Err(_) if text.lines().next().is_some_and(|line| line.contains("\"body\"")) => {
                let options = ReadOptions::default().with_at(Pointer::parse("/body").unwrap());
                text.lines().for_each(|line| row.add_or_refuse(read(line, &options), line));
            }
            Err(error) => row.add_advised(error, text),
        }
        row
    }

    /// Reads the text at the pointer that an error suggests, if there is one.
    fn add_advised(&mut self, error: WireError, text: &str) {
        let said = error.to_string();
        let Some((_, advice)) = said.split_once("try --") else { return self.refuse(&said) };
        let mut options = ReadOptions::default();
        options.each = advice.starts_with("each");
        if let Some((_, at)) = advice.split_once("at ") {
            options.at = Pointer::parse(at.trim()).ok();
        }
        self.add_or_refuse(read(text, &options), text);
    }

    fn add_or_refuse(&mut self, found: Result<Transcript, WireError>, text: &str) {
        match found {
            Ok(transcript) => self.add(&transcript, text),
            Err(error) => self.refuse(&error.to_string()),
        }
    }

    fn refuse(&mut self, why: &str) {
        self.refused.push(why.chars().take(WHY_CHARS).collect());
    }

    fn add(&mut self, transcript: &Transcript, text: &str) {
        let mut out = Vec::new();
        write_back(transcript, &mut out).unwrap();
        self.changed += usize::from(out != text.as_bytes());
        for conversation in transcript.conversations() {
            *self.formats.entry(conversation.format.as_str()).or_default() += 1;
            self.messages += conversation.entries.len();
            self.calls += conversation.messages().map(calls).sum::<usize>();
            for to in TARGETS {
                let messages = conversation.messages();
                self.conversions.entry(to.as_str()).or_default().add(messages, to);
            }
        }
    }

    fn join(&mut self, other: Self) {
        for (name, count) in other.formats {
            *self.formats.entry(name).or_default() += count;
        }
        self.refused.extend(other.refused);
        self.messages += other.messages;
        self.calls += other.calls;
        self.changed += other.changed;
        for (to, conversions) in other.conversions {
            self.conversions.entry(to).or_default().join(conversions);
        }
    }

    fn to_text(&self) -> String {
        if self.formats.is_empty() {
            return format!(
                "refused: {} |||{}",
                self.refused.first().map_or("", String::as_str),
                "|".repeat(TARGETS.len())
            );
        }
        let formats = self.formats.iter().map(|(name, count)| match count {
            1 => (*name).to_owned(),
            count => format!("{count} x {name}"),
        });
        let mut formats: Vec<_> = formats.collect();
        if !self.refused.is_empty() {
            formats.push(format!(
                "{} refused ({})",
                self.refused.len(),
                self.refused.first().map_or("", String::as_str)
            ));
        }
        let same = if self.changed == 0 { "yes" } else { "NO" };
        let conversions = TARGETS
            .map(|to| self.conversions.get(to.as_str()).map_or_else(String::new, Conversions::to_text));
        format!(
            "{} | {} | {} | {same} | {}",
            formats.join(", "),
            self.messages,
            self.calls,
            conversions.join(" | ")
        )
    }
}

impl Conversions {
    fn add<'m>(&mut self, messages: impl Iterator<Item = &'m Message>, to: Format) {
        let Ok(converted) = convert(messages, to) else {
            self.failed += 1;
            return;
        };
        for loss in &converted.losses {
            *self.losses.entry(loss.kind).or_default() += 1;
        }
        let again = read(converted.text, &ReadOptions::default().with_from(to)).unwrap();
        // Messages of a framework are sent as Chat Completions.
        let profile = Profile::by_name(to.as_str()).unwrap_or(Profile::OpenaiChat);
        let mut validator = Validator::<OpenCallTree>::new(profile);
        for message in again.active().unwrap().messages() {
            validator.push(message, &mut |_| self.breaches += 1).unwrap();
        }
        validator.finish(&mut |_| self.breaches += 1);
    }

    fn join(&mut self, other: Self) {
        self.breaches += other.breaches;
        self.failed += other.failed;
        for (kind, count) in other.losses {
            *self.losses.entry(kind).or_default() += count;
        }
    }

    fn to_text(&self) -> String {
        let mut text = match (self.failed, self.breaches) {
            (0, 0) => "clean".to_owned(),
            (failed, breaches) => format!("{failed} FAILED, {breaches} BREACHES"),
        };
        for (kind, count) in &self.losses {
            text += &format!(", {count} {}", kind.as_str());
        }
        text
    }
}

fn calls(message: &Message) -> usize {
    let is_call = |part: &&Part| matches!(part, Part::ToolCall(call) if matches!(call.kind, CallKind::Function | CallKind::Hosted));
    message.parts().iter().filter(is_call).count()
}

/// Maximum number of characters of an error message: enough to see the reason.
const WHY_CHARS: usize = 400;
