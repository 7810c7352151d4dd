//! Servers with fixed answers, and proxies that lose answers.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A server that gives one fixed answer to every command except greetings.
pub(crate) struct Mock {
    pub(crate) url: String,
    /// Number of these answers.
    pub(crate) asked: Arc<AtomicUsize>,
}

impl Mock {
    pub(crate) fn new(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://user:hunter2@127.0.0.1:{}", listener.local_addr().unwrap().port());
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        thread::spawn(move || {
            for connection in listener.incoming() {
                let counter = Arc::clone(&counter);
                thread::spawn(move || serve(connection.unwrap(), answer, &counter));
            }
        });
        Self { url, asked }
    }
}

/// Answers commands until the client disconnects.
fn serve(mut connection: TcpStream, answer: &str, asked: &AtomicUsize) {
    let refuses_names = answer.starts_with("-WRONGPASS") || answer.starts_with("-NOAUTH");
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    while let Some(name) = command(&mut reader) {
        let greets = matches!(name.as_str(), "HELLO" | "AUTH" | "CLIENT" | "SELECT");
        let answer = if greets && !(refuses_names && name == "AUTH") {
            "+OK\r\n"
        } else {
            asked.fetch_add(1, Ordering::SeqCst);
            answer
        };
        if connection.write_all(answer.as_bytes()).is_err() {
            break;
        }
    }
}

/// The name of the next command.
fn command(reader: &mut impl BufRead) -> Option<String> {
    let count = number(reader)?;
    let mut name = None;
    for _ in 0..count {
        let mut word = vec![0; number(reader)? + 2];
        reader.read_exact(&mut word).ok()?;
        name.get_or_insert_with(|| String::from_utf8_lossy(&word[..word.len() - 2]).to_uppercase());
    }
    name
}

fn number(reader: &mut impl BufRead) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    line.trim_end()[1..].parse().ok()
}

/// A proxy between a store and its server. It forwards requests, and loses the next `loses` answers; it cuts the
/// connection of a lost answer. Before the next answer, it performs the task in `first`, once.
pub(crate) struct Line {
    pub(crate) url: String,
    pub(crate) loses: Arc<AtomicUsize>,
    pub(crate) first: Arc<Mutex<Option<Task>>>,
}

pub(crate) type Task = Box<dyn FnOnce() + Send>;

impl Line {
    pub(crate) fn to(url: &str) -> Self {
        let server = url.strip_prefix("redis://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let loses = Arc::new(AtomicUsize::new(0));
        let (losing, first) = (Arc::clone(&loses), Arc::new(Mutex::new(None)));
        let tasks = Arc::clone(&first);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&server).unwrap());
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || carry(from, to, None));
                let (losing, tasks) = (Arc::clone(&losing), Arc::clone(&tasks));
                thread::spawn(move || carry(server, client, Some((&losing, &tasks))));
            }
        });
        Self { url, loses, first }
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, answers: Option<(&AtomicUsize, &Mutex<Option<Task>>)>) {
    let mut bytes = [0; 4096];
    while let Ok(read) = from.read(&mut bytes) {
        // Greetings have these answers, or are not understood. The answer of a script never begins so.
        let greeting = [&b"+OK\r\n"[..], b"-ERR", b"-NOSCRIPT"].iter().any(|word| bytes.starts_with(word));
        let answer = read > 0 && !greeting;
        let lost = answers.filter(|_| answer).is_some_and(|(left, first)| {
            if let Some(task) = first.lock().unwrap().take() {
                task();
            }
            left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
        });
        if read == 0 || lost || to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
