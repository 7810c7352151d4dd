//! The text that messages are cut from.

use core::fmt::Write as _;

use super::Random;

/// A few megabytes of mixed text.
#[derive(Debug)]
pub struct Pool(String);

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

impl Pool {
    /// Makes the pool, from a fixed seed.
    #[must_use]
    pub fn new() -> Self {
        let (mut text, random) = (String::with_capacity(POOL_BYTES + 4096), &mut Random(0x00E9_1703));
        while text.len() < POOL_BYTES {
            match random.below(20) {
                0..8 => prose(&mut text, random),
                8..13 => code(&mut text, random),
                13..16 => log(&mut text, random),
                16..18 => records(&mut text, random),
                18 => text.push_str(SENTENCES[random.below(SENTENCES.len())]),
                _ => base64(&mut text, random),
            }
            text.push('\n');
        }
        Self(text)
    }

    /// A piece of `least` to `most` bytes, possibly shorter so that no character is cut at its ends.
    pub(super) fn cut(&self, random: &mut Random, least: usize, most: usize) -> &str {
        let length = least + random.below(most - least + 1);
        let start = self.0.ceil_char_boundary(random.below(self.0.len() - most));
        &self.0[start..self.0.floor_char_boundary(start + length)]
    }
}

fn prose(text: &mut String, random: &mut Random) {
    for _ in 0..3 + random.below(4) {
        for at in 0..6 + random.below(14) {
            let word = WORDS[random.below(WORDS.len()).min(random.below(WORDS.len()))];
            if at > 0 {
                text.push(' ');
            }
            text.push_str(word);
        }
        text.push_str([". ", ", however. ", "? ", ": "][random.below(4)]);
    }
}

fn code(text: &mut String, random: &mut Random) {
    let word = |random: &mut Random| WORDS[random.below(WORDS.len())];
    let (name, of, kind) = (word(random), word(random), ["usize", "&str", "Option<u32>"][random.below(3)]);
    let _ = writeln!(text, "pub fn {name}_{of}({of}: {kind}) -> Result<Vec<u8>, Error> {{");
    for _ in 0..2 + random.below(6) {
        let (left, right, number) = (word(random), word(random), random.below(4096));
        let _ = writeln!(text, "    let {left} = self.{right}.get({number}).ok_or(Error::{name:?})?;");
    }
    text.push_str("    Ok(bytes)\n}\n");
}

fn log(text: &mut String, random: &mut Random) {
    for _ in 0..3 + random.below(6) {
        let level = ["INFO", "WARN", "DEBUG", "ERROR"][random.below(4)];
        let (minute, second, id) = (random.below(60), random.below(60), random.next());
        let (word, millis) = (WORDS[random.below(WORDS.len())], random.below(9000));
        let _ = writeln!(
            text,
            "2026-03-14T09:{minute:02}:{second:02}Z {level} {word}::worker id={id:016x} took {millis} ms"
        );
    }
}

fn records(text: &mut String, random: &mut Random) {
    for _ in 0..2 + random.below(5) {
        let (id, score, word) = (random.below(100_000), random.below(1000), WORDS[random.below(WORDS.len())]);
        let _ = writeln!(
            text,
            "{{\"id\": {id}, \"name\": \"{word}\", \"tags\": [\"a\", \"{word}-2\"], \"score\": 0.{score}}}"
        );
    }
}

fn base64(text: &mut String, random: &mut Random) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..200 + random.below(400)).for_each(|_| text.push(char::from(ALPHABET[random.below(64)])));
}

/// Size of the pool in bytes: large enough that neither texts nor tokenizer work repeat within a cache.
const POOL_BYTES: usize = 4 << 20;

/// Words, common ones first: the smaller of two random positions is taken.
const WORDS: [&str; 120] = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "is",
    "it",
    "that",
    "file",
    "for",
    "on",
    "this",
    "with",
    "as",
    "test",
    "be",
    "by",
    "are",
    "not",
    "from",
    "at",
    "or",
    "when",
    "which",
    "function",
    "have",
    "an",
    "can",
    "we",
    "line",
    "if",
    "all",
    "has",
    "but",
    "value",
    "returns",
    "error",
    "type",
    "will",
    "one",
    "you",
    "was",
    "message",
    "there",
    "after",
    "so",
    "build",
    "only",
    "each",
    "other",
    "because",
    "first",
    "should",
    "then",
    "into",
    "more",
    "these",
    "also",
    "new",
    "call",
    "request",
    "does",
    "their",
    "user",
    "same",
    "before",
    "window",
    "answer",
    "where",
    "they",
    "history",
    "reads",
    "still",
    "change",
    "two",
    "server",
    "please",
    "what",
    "fails",
    "module",
    "between",
    "without",
    "index",
    "let",
    "token",
    "buffer",
    "why",
    "table",
    "result",
    "budget",
    "every",
    "parser",
    "memory",
    "config",
    "thread",
    "missing",
    "version",
    "compile",
    "length",
    "schema",
    "timeout",
    "encoding",
    "register",
    "handler",
    "iterator",
    "session",
    "database",
    "provider",
    "deadline",
    "allocation",
    "transaction",
    "configuration",
    "deterministic",
    "serialization",
    "approximately",
    "compatibility",
    "responsibility",
    "synchronization",
    "unfortunately",
    "environment",
];

const SENTENCES: [&str; 7] = [
    "Bitte lies zuerst die Datei und erkläre danach, warum der dritte Test seit gestern fehlschlägt. ",
    "Le serveur répond lentement parce que chaque requête ouvre une nouvelle connexion à la base. ",
    "El resultado no coincide con la tabla: faltan dos filas y la última columna está vacía. ",
    "请先读取配置文件，然后告诉我为什么第三个测试从昨天开始失败。",
    "ログを確認してから、タイムアウトの原因を短く説明してください。",
    "Пожалуйста, проверьте журнал и объясните, почему сборка не проходит на сервере. ",
    "सर्वर धीमा है क्योंकि हर अनुरोध एक नया कनेक्शन खोलता है। ",
];
