//! Error of the estimator against `o200k_base`: on texts of each kind written for this test, and on real transcripts where a copy of them
//! lies beside the workspace (`shared/data`).

use std::fs;
use std::path::{Path, PathBuf};

use epitome_core::{ClassEstimator, TokenCounter};
use epitome_message::tokens::Tiktoken;

/// Estimate over count, in percent.
fn ratio(texts: &[String]) -> f64 {
    let sum = |counter: &dyn TokenCounter| {
        texts.iter().map(|text| counter.count(text).as_u64()).sum::<u64>() as f64
    };
    100.0 * sum(&ClassEstimator::new()) / sum(&Tiktoken::o200k_base())
}

#[test]
fn written_texts_are_within_their_bounds() {
    let base64: String = bytes(900).map(|byte| BASE64[byte % 64] as char).collect();
    let hex: String = bytes(900).map(|byte| char::from_digit((byte % 16) as u32, 16).unwrap()).collect();
    let digits: String = bytes(900).map(|byte| char::from_digit((byte % 10) as u32, 10).unwrap()).collect();
    for (kind, text, lowest, highest) in [
        ("English", ENGLISH, 90.0, 110.0),
        ("German", GERMAN, 85.0, 115.0),
        ("Chinese", CHINESE, 80.0, 120.0),
        ("Japanese", JAPANESE, 80.0, 120.0),
        ("code", CODE, 88.0, 112.0),
        ("JSON", JSON, 88.0, 112.0),
        ("log", LOG, 88.0, 112.0),
        ("base64", &base64, 80.0, 120.0),
        ("hex", &hex, 80.0, 120.0),
        ("digits", &digits, 80.0, 120.0),
    ] {
        let percent = ratio(&[text.to_owned()]);
        println!("{kind}: {percent:.1} %");
        assert!((lowest..=highest).contains(&percent), "{kind}: {percent:.1} %");
    }
}

#[test]
fn transcripts_are_within_their_bounds() {
    let Some(folder) = transcripts() else {
        println!("no transcripts beside the workspace: only the written texts were measured");
        return;
    };
    let mut files = Vec::new();
    list(&folder, &mut files);
    let mut errors: Vec<f64> = files.iter().filter_map(|file| error_of(file)).collect();
    errors.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    println!("{} files: {errors:.1?}", errors.len());
    assert!(errors[errors.len() / 2].abs() <= 3.0, "median");
    assert!(errors[(errors.len() - 1) * 95 / 100].abs() <= 10.0, "95th percentile");
    assert!(errors.iter().all(|error| (-10.0..=20.0).contains(error)), "worst file");
}

/// The error of a file's total in percent, over its distinct strings: placeholders repeated a thousand times would
/// measure one string.
fn error_of(file: &Path) -> Option<f64> {
    let text = fs::read_to_string(file).ok()?;
    let mut strings = Vec::new();
    match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
        Ok(value) => collect(&value, &mut strings),
        Err(_) => text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .for_each(|v| collect(&v, &mut strings)),
    }
    strings.sort();
    strings.dedup();
    let mut bytes = 0;
    strings.retain(|string| {
        bytes += string.len();
        bytes <= FILE_BYTES_MAX
    });
    (bytes >= FILE_BYTES_MIN).then(|| ratio(&strings) - 100.0)
}

fn collect(value: &serde_json::Value, strings: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) if text.chars().count() > 8 => strings.push(text.clone()),
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, strings)),
        serde_json::Value::Object(fields) => fields.values().for_each(|field| collect(field, strings)),
        _ => {}
    }
}

fn transcripts() -> Option<PathBuf> {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().skip(1);
    above.map(|folder| folder.join("shared/data")).find(|folder| folder.is_dir())
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_json = |path: &Path| {
            path.extension().is_some_and(|end| end == "json" || end == "jsonl" || end == "traj")
        };
        if path.is_dir() {
            list(&path, files);
        } else if is_json(&path) {
            files.push(path);
        }
    }
}

fn bytes(count: usize) -> impl Iterator<Item = usize> {
    let mut state = 11_u64;
    core::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as usize
    })
    .take(count)
}

/// Largest part of a file that is counted, which is enough for the error; a test build counts slowly.
const FILE_BYTES_MAX: usize = 100_000;
const FILE_BYTES_MIN: usize = 1_000;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const ENGLISH: &str = "I looked into the failing build this morning. The tests that read the configuration pass on \
their own, but when the whole suite runs they share a temporary folder, and whichever finishes first deletes it. I would \
rather give each test a folder of its own than make them wait for one another. Shall I go ahead? It touches eleven files, \
mostly one line each, and nothing that users can see.";

const GERMAN: &str = "Ich habe mir heute Morgen den fehlgeschlagenen Lauf angesehen. Die Prüfungen, die die Einstellungen \
lesen, bestehen einzeln, aber wenn alle zusammen laufen, teilen sie sich ein Verzeichnis, und die schnellste löscht es. \
Ich würde lieber jeder ein eigenes Verzeichnis geben, als sie aufeinander warten zu lassen. Soll ich das so umsetzen?";

const CHINESE: &str = "我今天早上检查了失败的构建。读取配置的测试单独运行时都能通过，但是整套测试一起运行时，它们共用\
同一个临时目录，最先结束的测试会把它删除。我建议给每个测试一个单独的目录，而不是让它们互相等待。这个改动涉及十一个文件，\
大部分只有一行，用户看不到任何变化。可以开始吗？";

const JAPANESE: &str = "今朝、失敗したビルドを調べました。設定を読み込むテストは単独では成功しますが、全体を実行すると\
一時フォルダーを共有しているため、最初に終わったテストがそれを削除してしまいます。互いに待たせるよりも、テストごとに別の\
フォルダーを用意するほうがよいと思います。進めてもよろしいでしょうか。";

const CODE: &str = r#"
pub fn longest_common_prefix<'a>(words: &[&'a str]) -> &'a str {
    let Some((first, rest)) = words.split_first() else { return "" };
    let mut end = first.len();
    for word in rest {
        // Characters, not bytes: a prefix must not end inside one.
        end = first[..end].char_indices().zip(word.chars()).find(|((_, a), b)| a != b).map_or(end, |((at, _), _)| at);
    }
    &first[..end]
}

def parse_row(line: str, *, sep: str = ",") -> dict[str, float]:
    name, *values = line.rstrip("\n").split(sep)
    if len(values) != 3:
        raise ValueError(f"{name}: expected 3 values, got {len(values)}")
    return {"x": float(values[0]), "y": float(values[1]), "z": float(values[2])}
"#;

const JSON: &str = r#"{"id":"call_81","type":"function","function":{"name":"search_flights","arguments":{"origin":"LIS",
"destination":"OSL","date":"2025-04-17","cabin":"economy","passengers":[{"type":"adult","count":2},{"type":"child","count":1}],
"max_price":420.5,"flexible":true}},"result":{"status":"ok","flights":[{"number":"TP762","departs":"09:25","arrives":"14:40",
"price":389.0,"seats_left":4},{"number":"D82931","departs":"17:10","arrives":"22:35","price":412.9,"seats_left":null}]}}"#;

const LOG: &str = "2025-03-02T08:14:07.113Z INFO  server::http: listening on 0.0.0.0:8080 (pid 4127)
2025-03-02T08:14:09.870Z WARN  pool: connection 3 idle for 301 s, closing
2025-03-02T08:14:11.002Z ERROR worker-2: job 5f1c failed after 3 attempts: timeout waiting for 10.2.0.17:5432
    at Worker.run (/srv/app/dist/worker.js:88:13)
    at async Queue.next (/srv/app/dist/queue.js:41:5)
2025-03-02T08:14:11.004Z INFO  worker-2: retry in 4000 ms
";
