//! The scripts and their arguments. Each script is one atomic step.

use std::sync::LazyLock;

use ::redis::Script;

use super::keys::{Key, SessionKeys};

/// All scripts; each begins with the same lines.
pub(super) static SCRIPTS: LazyLock<Scripts> = LazyLock::new(|| {
    let script = |text: &str| Script::new(&[include_str!("lua/prelude.lua"), text].concat());
    Scripts {
        append: script(include_str!("lua/append.lua")),
        appends: script(include_str!("lua/appends.lua")),
        change: script(include_str!("lua/change.lua")),
        delete: script(include_str!("lua/delete.lua")),
        forget: script(include_str!("lua/forget.lua")),
        keep_words: script(include_str!("lua/keep_words.lua")),
        load: script(include_str!("lua/load.lua")),
        log: script(include_str!("lua/log.lua")),
        prune: script(include_str!("lua/prune.lua")),
        prunes: script(include_str!("lua/prunes.lua")),
        records: script(include_str!("lua/records.lua")),
        save_state: script(include_str!("lua/save_state.lua")),
        survey: script(include_str!("lua/survey.lua")),
        undo: script(include_str!("lua/undo.lua")),
        words: script(include_str!("lua/words.lua")),
    }
});

#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) append: Script,
    pub(super) appends: Script,
    pub(super) change: Script,
    pub(super) delete: Script,
    pub(super) forget: Script,
    pub(super) keep_words: Script,
    pub(super) load: Script,
    pub(super) log: Script,
    pub(super) prune: Script,
    pub(super) prunes: Script,
    pub(super) records: Script,
    pub(super) save_state: Script,
    pub(super) survey: Script,
    pub(super) undo: Script,
    pub(super) words: Script,
}

/// A script with the keys of a session and its arguments.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) script: &'static Script,
    pub(super) keys: &'a SessionKeys,
    pub(super) args: Args,
}

/// Arguments in the form that the scripts read.
#[derive(Default)]
pub(super) struct Args(Vec<Vec<u8>>);

impl core::fmt::Debug for Args {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Args").field(&self.0.len()).finish()
    }
}

impl Args {
    pub(super) fn of<const N: usize>(args: [String; N]) -> Self {
        Self(args.map(String::into_bytes).into())
    }

    pub(super) fn as_slice(&self) -> &[Vec<u8>] {
        &self.0
    }

    /// Adds the number of these arguments, and the arguments.
    pub(super) fn list(&mut self, args: impl IntoIterator<Item = String>) {
        self.bytes(args.into_iter().map(String::into_bytes));
    }

    /// Adds the number of these arguments, and the arguments.
    pub(super) fn bytes(&mut self, args: impl IntoIterator<Item = Vec<u8>>) {
        let at = self.0.len();
        self.0.push(Vec::new());
        self.0.extend(args);
        let count = self.0.len().saturating_sub(at).saturating_sub(1);
        if let Some(place) = self.0.get_mut(at) {
            *place = count.to_string().into_bytes();
        }
    }

    /// Adds a command on a key. The command must accept any number of arguments, single or in pairs. Without arguments
    /// it is left out.
    pub(super) fn command(&mut self, key: Key, name: &str, args: impl IntoIterator<Item = String>) {
        let mut args = args.into_iter().peekable();
        if args.peek().is_some() {
            self.0.extend([(key as usize).to_string(), name.to_owned()].map(String::into_bytes));
            self.list(args);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_stands_behind_its_length_and_a_command_behind_its_key() {
        let mut args = Args::of(["a".to_owned()]);
        args.list([]);
        args.list(["b".to_owned(), "c".to_owned()]);
        args.command(Key::Live, "ZREM", []);
        args.command(Key::Live, "ZADD", ["1".to_owned(), "m".to_owned()]);
        let texts = ["a", "0", "2", "b", "c", "4", "ZADD", "2", "1", "m"];
        assert!(args.as_slice().iter().eq(&texts.map(|text| text.as_bytes().to_vec())));
        assert!(!format!("{args:?}").contains('m'));
    }
}
