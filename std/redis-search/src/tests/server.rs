//! A server with the module, for tests. It accepts only the commands of this crate and of Agent Framework's provider.
//! An unknown command is a fault, which is reported to the owner when the server is dropped.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::query::{Hash, Nearest, matches, parse};

/// An answer in the place of the server's own.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// An answer of these bytes.
    Raw(String),
    /// An answer of these bytes, and then the connection ends.
    Last(String),
    /// No answer, for longer than any timeout.
    Never,
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) port: u16,
    pub(super) state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// The commands that were received, without greetings.
    pub(super) asked: Vec<Vec<Vec<u8>>>,
    pub(super) hashes: BTreeMap<String, Hash>,
    /// The words of the command that created each index, by the name of the index.
    pub(super) indexes: BTreeMap<String, Vec<String>>,
    /// Answers to the next commands of these names.
    pub(super) answers: VecDeque<(&'static str, Answer)>,
    /// The password of the user `search`; without a password, every client may connect.
    pub(super) password: Option<String>,
    pub(super) connections: usize,
    pub(super) faults: Vec<String>,
}

impl Server {
    pub(super) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, state) = (listener.local_addr().unwrap().port(), Arc::<Mutex<State>>::default());
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                shared.lock().unwrap().connections += 1;
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { port, state }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.state.lock().unwrap().faults, Vec::<String>::new());
        }
    }
}

async fn serve(stream: TcpStream, state: Arc<Mutex<State>>) {
    let mut stream = BufReader::new(stream);
    let mut is_known = state.lock().unwrap().password.is_none();
    while let Some(command) = command(&mut stream).await {
        let words: Vec<String> =
            command.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let answer = state.lock().unwrap().answer(command, &words, &mut is_known);
        let (answer, is_last) = match answer {
            Answer::Raw(text) => (text, false),
            Answer::Last(text) => (text, true),
            Answer::Never => core::future::pending().await,
        };
        if stream.write_all(answer.as_bytes()).await.is_err() || is_last {
            return;
        }
    }
}

/// The next command, an array of texts.
async fn command(stream: &mut BufReader<TcpStream>) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    for _ in 0..number(stream, '*').await? {
        let mut word = vec![0; number(stream, '$').await? + 2];
        stream.read_exact(&mut word).await.ok()?;
        word.truncate(word.len() - 2);
        words.push(word);
    }
    Some(words)
}

async fn number(stream: &mut BufReader<TcpStream>, sign: char) -> Option<usize> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    line.strip_prefix(sign)?.trim_end().parse().ok()
}

impl State {
    fn answer(&mut self, command: Vec<Vec<u8>>, words: &[String], is_known: &mut bool) -> Answer {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ok = || Answer::Raw("+OK\r\n".to_owned());
        match (words[0], &words[1..]) {
            ("AUTH", [user, password]) => {
                *is_known = *user == "search" && self.password.as_deref() == Some(password);
                return if *is_known { ok() } else { Answer::Raw("-WRONGPASS invalid\r\n".to_owned()) };
            }
            ("CLIENT", ["SETINFO", ..]) => return ok(),
            _ if !*is_known => return Answer::Raw("-NOAUTH Authentication required.\r\n".to_owned()),
            _ => (),
        }
        let told = self.answers.front().is_some_and(|(name, _)| *name == words[0]);
        let answer = match told {
            true => self.answers.pop_front().map(|(_, answer)| answer).unwrap(),
            false => Answer::Raw(self.done(&command, &words).unwrap_or_else(|fault| {
                self.faults.push(format!("{fault}: {words:?}"));
                "-ERR a fault of the test\r\n".to_owned()
            })),
        };
        self.asked.push(command);
        answer
    }

    fn done(&mut self, command: &[Vec<u8>], words: &[&str]) -> Result<String, String> {
        let gone = || Ok("-Unknown index name\r\n".to_owned());
        match (words[0], &words[1..]) {
            ("PING", []) => Ok("+PONG\r\n".to_owned()),
            ("FT._LIST", []) => Ok(array(&self.indexes.keys().map(|name| bulk(name)).collect::<Vec<_>>())),
            ("FT.CREATE", [name, definition @ ..]) => {
                described(name, definition)?;
                if self.indexes.contains_key(*name) {
                    return Ok("-Index already exists\r\n".to_owned());
                }
                self.indexes
                    .insert((*name).to_owned(), definition.iter().map(|word| (*word).to_owned()).collect());
                Ok("+OK\r\n".to_owned())
            }
            ("FT.INFO", [name]) => match self.indexes.get(*name) {
                Some(definition) => {
                    described(name, &definition.iter().map(String::as_str).collect::<Vec<_>>())
                }
                None => gone(),
            },
            ("HSET", [key, fields @ ..]) if !fields.is_empty() && fields.len() % 2 == 0 => {
                let hash = self.hashes.entry((*key).to_owned()).or_default();
                for pair in command[2..].chunks(2) {
                    hash.insert(String::from_utf8(pair[0].clone()).map_err(|_| "a name")?, pair[1].clone());
                }
                Ok(":1\r\n".to_owned())
            }
            ("FT.SEARCH" | "FT.AGGREGATE", [name, query, ..]) => match self.indexes.get(*name) {
                Some(definition) => {
                    self.found(&definition[4], query, words[0], &Options::of(command, words)?)
                }
                None => gone(),
            },
            _ => Err("an unknown command".to_owned()),
        }
    }

    fn found(&self, prefix: &str, query: &str, name: &str, options: &Options) -> Result<String, String> {
        let (node, nearest) = parse(query)?;
        let hashes = self.hashes.iter().filter(|(key, _)| key.starts_with(prefix));
        let found = hashes.filter_map(|(key, hash)| Some((key, hash, matches(&node, None, hash)? as f32)));
        let mut found: Vec<_> = found.collect();
        if let Some(Nearest { count, field, parameter, distance }) = &nearest {
            let vector =
                options.vector.as_ref().filter(|_| parameter == "vector" && distance == "vector_distance");
            let vector = vector.ok_or("no vector")?;
            let share = if name == "FT.AGGREGATE" { 0.3 } else { 0.0 };
            for (_, hash, score) in &mut found {
                let similarity = hash.get(field).map_or(0.0, |stored| similarity(stored, vector));
                *score = share * *score + 0.7 * similarity;
            }
            found.retain(|(_, hash, _)| hash.contains_key(field));
            found.sort_by(|a, b| b.2.total_cmp(&a.2));
            found.truncate(*count);
        }
        if (name == "FT.AGGREGATE") != options.is_ranked || nearest.is_none() != options.vector.is_none() {
            return Err("other options than its query wants".to_owned());
        }
        found.sort_by(|a, b| b.2.total_cmp(&a.2));
        let mut parts = vec![format!(":{}\r\n", found.len())];
        for (key, hash, score) in found.into_iter().take(options.count) {
            if name == "FT.SEARCH" {
                parts.push(bulk(key));
            }
            if options.has_scores {
                parts.push(bulk(&score.to_string()));
            }
            let fields = options.fields.iter().filter_map(|field| {
                let value = String::from_utf8_lossy(hash.get(field)?).into_owned();
                Some([bulk(field), bulk(&value)])
            });
            parts.push(array(&fields.flatten().collect::<Vec<_>>()));
        }
        Ok(array(&parts))
    }
}

/// The options of a search. An unknown option is a fault.
#[derive(Debug, Default)]
struct Options {
    fields: Vec<String>,
    count: usize,
    vector: Option<Vec<u8>>,
    has_scores: bool,
    is_ranked: bool,
}

impl Options {
    fn of(command: &[Vec<u8>], words: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        let (mut at, mut dialect) = (3, 0);
        while at < words.len() {
            let rest = &words[at..];
            at += match rest {
                ["SCORER", "BM25STD", ..] => 2,
                ["WITHSCORES", ..] => {
                    options.has_scores = true;
                    1
                }
                ["ADDSCORES", ..] => 1,
                ["DIALECT", "2", ..] => {
                    dialect = 2;
                    2
                }
                ["RETURN" | "LOAD", count, fields @ ..] => {
                    let count: usize = count.parse().map_err(|_| "a count")?;
                    options.fields =
                        fields.get(..count).ok_or("fields")?.iter().map(|it| (*it).to_owned()).collect();
                    2 + count
                }
                ["LIMIT", "0", count, ..] => {
                    options.count = count.parse().map_err(|_| "a limit")?;
                    3
                }
                ["APPLY", expression, "AS", name, ..] => {
                    let is_known = match *name {
                        "vector_similarity" => *expression == "(2 - @vector_distance)/2",
                        "text_score" => *expression == "@__score",
                        "hybrid_score" => ["0.3", "0.30000000000000004"]
                            .map(|share| format!("{share}*@text_score + 0.7*@vector_similarity"))
                            .contains(&(*expression).to_owned()),
                        _ => false,
                    };
                    is_known.then_some(4).ok_or("an expression")?
                }
                ["SORTBY", "2", "@hybrid_score", "DESC", "MAX", count, ..] => {
                    (options.is_ranked, options.count) = (true, count.parse().map_err(|_| "a limit")?);
                    6
                }
                ["SORTBY", "vector_distance", "ASC", ..] => 3,
                ["PARAMS", "2", "vector", _, ..] => {
                    options.vector = Some(command[at + 3].clone());
                    4
                }
                _ => return Err(format!("an option {rest:?}")),
            };
        }
        match dialect == 2 && options.count > 0 && !options.fields.is_empty() {
            true => Ok(options),
            false => Err("an option is missing".to_owned()),
        }
    }
}

/// The answer to `FT.INFO` for this definition. An unknown definition is an error.
fn described(name: &str, definition: &[&str]) -> Result<String, String> {
    let ["ON", "HASH", "PREFIX", "1", prefix, "SCORE", "1.0", "SCHEMA", fields @ ..] = definition else {
        return Err("a definition".to_owned());
    };
    let (mut rest, mut attributes) = (fields, Vec::new());
    while let [field, kind, more @ ..] = rest {
        let mut words = vec!["identifier", field, "attribute", field, "type", kind];
        rest = match (*kind, more) {
            ("TAG", ["SEPARATOR", _, more @ ..]) | ("TEXT", ["WEIGHT", _, more @ ..]) => more,
            ("VECTOR", [_, count, more @ ..]) => more.split_at(count.parse().map_err(|_| "a count")?).1,
            _ => return Err(format!("a field {field}")),
        };
        match (*kind, more) {
            ("VECTOR", [algorithm, _, "TYPE", kind, "DIM", dimensions, "DISTANCE_METRIC", metric, ..]) => {
                words.extend([
                    "algorithm",
                    algorithm,
                    "data_type",
                    kind,
                    "dim",
                    dimensions,
                    "distance_metric",
                    metric,
                ]);
            }
            ("VECTOR", _) => return Err("a vector".to_owned()),
            _ => words.extend(&more[..2]),
        }
        while let [flag @ ("CASESENSITIVE" | "WITHSUFFIXTRIE" | "NOSTEM"), more @ ..] = rest {
            words.push(flag);
            rest = more;
        }
        attributes.push(array(&words.into_iter().map(bulk).collect::<Vec<_>>()));
    }
    let prefixes = array(&[bulk(prefix)]);
    let about = array(&[
        bulk("key_type"),
        bulk("HASH"),
        bulk("prefixes"),
        prefixes,
        bulk("default_score"),
        bulk("1"),
    ]);
    let parts =
        [bulk("index_name"), bulk(name), bulk("index_options"), array(&[]), bulk("index_definition"), about];
    Ok(array(&[&parts[..], &[bulk("attributes"), array(&attributes), bulk("num_docs"), bulk("0")]].concat()))
}

/// `(2 - distance)/2` of two vectors by their angle.
fn similarity(one: &[u8], other: &[u8]) -> f32 {
    let floats = |bytes: &[u8]| -> Vec<f32> {
        bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
    };
    let (one, other) = (floats(one), floats(other));
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let cosine = dot(&one, &other) / (dot(&one, &one) * dot(&other, &other)).sqrt();
    f32::midpoint(1.0, cosine)
}

pub(super) fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

pub(super) fn array(parts: &[String]) -> String {
    format!("*{}\r\n{}", parts.len(), parts.concat())
}
