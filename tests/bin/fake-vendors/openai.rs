//! The Responses API with its compaction, as OpenAI, Azure and xAI document it. A vendor cannot read an item that
//! another vendor sealed.
//!
//! A fact is a text `FACT-n` in an item. A compaction item holds, sealed, the facts of the items that it replaces, also
//! of earlier compaction items. An answer states the number of facts in the request, sealed or not, so that a test
//! finds out whether a compaction lost a fact.
//!
//! The server reports usage: one token for four bytes.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde_json::{Value, json};

use crate::fault::{self, header};

pub(crate) fn routes() -> Router {
    Router::new()
        .route("/{vendor}/v1/responses", post(create))
        .route("/{vendor}/v1/responses/compact", post(compact))
        .route("/{vendor}/openai/v1/responses/compact", post(compact))
}

async fn create(path: Path<String>, query: RawQuery, headers: HeaderMap, body: Bytes) -> Response {
    answered(&path, &query, (&headers, &body), respond).await
}

async fn compact(path: Path<String>, query: RawQuery, headers: HeaderMap, body: Bytes) -> Response {
    answered(&path, &query, (&headers, &body), compaction).await
}

/// The error code of a refusal.
type Refused = &'static str;

async fn answered(
    vendor: &str,
    query: &RawQuery,
    (headers, body): (&HeaderMap, &[u8]),
    answer: fn(&str, &Value, &str) -> Result<Value, Refused>,
) -> Response {
    let authorized = match vendor {
        "azure-openai" => {
            header(headers, "api-key") == Some(KEY) && query.0.as_deref() == Some("api-version=preview")
        }
        _ => header(headers, "authorization") == Some(&format!("Bearer {KEY}")),
    };
    if !authorized {
        return refused(StatusCode::UNAUTHORIZED, "invalid_api_key");
    }
    let fault = fault::of(headers);
    if let Some(answer) = fault::answer(&fault).await {
        return answer;
    }
    let request: Result<Value, Refused> = serde_json::from_slice(body).map_err(|_| "invalid_json");
    // The stored items that the request continues are input too.
    let before = request.as_ref().ok().and_then(|request| request.get("previous_response_id"));
    if fault == "forget" {
        before.and_then(Value::as_str).into_iter().for_each(forget);
    }
    let kept = before.and_then(Value::as_str).map_or(0, kept_bytes);
    match request.and_then(|request| answer(vendor, &request, &fault)) {
        Ok(mut answer) => {
            // User messages in the output are copies of the input: they are no output tokens.
            let written = answer.get("output").and_then(Value::as_array).into_iter().flatten();
            let written = written.filter(|item| item["role"] != "user");
            let output = written.map(|item| item.to_string().len() / 4).sum::<usize>();
            let input = (body.len() + kept) / 4;
            let usage = json!({
                "input_tokens": input, "input_tokens_details": {"cached_tokens": input / 2},
                "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 3},
                "total_tokens": input + output,
            });
            answer.as_object_mut().map(|answer| answer.insert("usage".into(), usage));
            (StatusCode::OK, answer.to_string()).into_response()
        }
        Err(code) => refused(StatusCode::BAD_REQUEST, code),
    }
}

/// The API key that the server accepts.
const KEY: &str = "sk-test-4711";

fn refused(status: StatusCode, code: &str) -> Response {
    let error = json!({"error": {"code": code, "message": "refused", "type": "invalid_request_error"}});
    (status, error.to_string()).into_response()
}

/// `POST /responses/compact`.
fn compaction(vendor: &str, request: &Value, fault: &str) -> Result<Value, Refused> {
    check_fields(request, COMPACT_FIELDS)?;
    let items = items(vendor, request)?;
    if items.iter().any(|item| kind(item) == "compaction_trigger") {
        return Err("compaction_trigger_not_supported");
    }
    let mut output: Vec<Value> = match vendor {
        "xai" => Vec::new(),
        _ => items.iter().filter(|item| item["role"] == "user").cloned().collect(),
    };
    output.push(sealed(vendor, &items));
    let output = fault::output(fault, output);
    Ok(json!({"id": "resp_c", "object": "response.compaction", "created_at": 1, "output": output}))
}

/// `POST /responses`.
fn respond(vendor: &str, request: &Value, fault: &str) -> Result<Value, Refused> {
    check_fields(request, RESPONSE_FIELDS)?;
    let mut items = items(vendor, request)?;
    let triggers = items.iter().filter(|item| kind(item) == "compaction_trigger").count();
    let output = if triggers > 0 {
        let last = items.pop().ok_or("input_empty")?;
        if triggers > 1 || kind(&last) != "compaction_trigger" {
            return Err("compaction_trigger_not_last");
        }
        fault::output(fault, vec![sealed(vendor, &items)])
    } else {
        let mut output = Vec::new();
        if let Some(threshold) = threshold(request)? {
            let size = items.iter().map(|item| item.to_string().len() as u64 / 4).sum::<u64>();
            output.extend((size > threshold).then(|| sealed(vendor, &items)));
        }
        output.push(said(vendor, request, &items));
        output
    };
    let id = stored(request, &items, &output);
    Ok(json!({"id": id, "object": "response", "status": "completed", "created_at": 1, "output": output}))
}

/// The number of the next call or response.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The answer of the model: a call of the first tool after a user message, otherwise a text with the numbers of items
/// and facts.
fn said(vendor: &str, request: &Value, items: &[Value]) -> Value {
    let tool = request.pointer("/tools/0/name").and_then(Value::as_str);
    let asks = items.last().is_some_and(|last| last["role"] == "user");
    if let Some(name) = tool.filter(|_| asks) {
        let id = format!("call_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        return json!({"type": "function_call", "call_id": id, "name": name, "arguments": "{}"});
    }
    let text = format!("{} items, {} facts", items.len(), facts(vendor, items).len());
    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
}

/// Items that the service stores, by response id.
static STORED: Mutex<Option<HashMap<String, Vec<Value>>>> = Mutex::new(None);

fn stored(request: &Value, items: &[Value], output: &[Value]) -> String {
    let mut stored = STORED.lock().unwrap_or_else(PoisonError::into_inner);
    let stored = stored.get_or_insert_default();
    let id = format!("resp_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let kept = if request["store"] == false { Vec::new() } else { [items, output].concat() };
    stored.insert(id.clone(), kept);
    id
}

fn forget(id: &str) {
    let mut stored = STORED.lock().unwrap_or_else(PoisonError::into_inner);
    stored.as_mut().and_then(|stored| stored.remove(id));
}

fn kept_bytes(id: &str) -> usize {
    let stored = STORED.lock().unwrap_or_else(PoisonError::into_inner);
    let items = stored.as_ref().and_then(|stored| stored.get(id)).into_iter().flatten();
    items.map(|item| item.to_string().len()).sum()
}

fn threshold(request: &Value) -> Result<Option<u64>, Refused> {
    let Some(edits) = request.get("context_management") else { return Ok(None) };
    match edits.as_array().map(Vec::as_slice) {
        Some([edit]) if edit["type"] == "compaction" => {
            Ok(Some(edit["compact_threshold"].as_u64().unwrap_or(10_000)))
        }
        _ => Err("invalid_context_management"),
    }
}

const COMPACT_FIELDS: &[&str] = &[
    "model",
    "input",
    "previous_response_id",
    "instructions",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "service_tier",
    "image",
];

const RESPONSE_FIELDS: &[&str] = &[
    "model",
    "input",
    "previous_response_id",
    "instructions",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "service_tier",
    "tools",
    "store",
    "context_management",
];

fn check_fields(request: &Value, known: &[&str]) -> Result<(), Refused> {
    let fields = request.as_object().ok_or("no_object")?;
    if !fields.keys().all(|key| known.contains(&key.as_str())) {
        return Err("unknown_parameter");
    }
    let model = request["model"].as_str().ok_or("missing_model")?;
    if model.is_empty() || request.get("instructions").is_some_and(|text| !text.is_string()) {
        return Err("invalid_type");
    }
    Ok(())
}

/// All items of a request. The stored items of its `previous_response_id` come first.
fn items(vendor: &str, request: &Value) -> Result<Vec<Value>, Refused> {
    if vendor == "xai" && request.get("instructions").is_some() {
        return Err("instructions_not_supported");
    }
    let mut items = Vec::new();
    if let Some(id) = request.get("previous_response_id") {
        let stored = STORED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = id.as_str().and_then(|id| stored.as_ref()?.get(id));
        let known = known.filter(|items| !items.is_empty()).ok_or("previous_response_not_found")?;
        items.extend_from_slice(known);
    }
    match request.get("input") {
        Some(Value::String(text)) => items.push(json!({"type": "message", "role": "user", "content": text})),
        Some(Value::Array(own)) => items.extend_from_slice(own),
        None if !items.is_empty() => {}
        _ => return Err("missing_input"),
    }
    check_items(vendor, &items)?;
    Ok(items)
}

/// Checks that each item is valid for its type, and that the output of each call follows the call.
fn check_items(vendor: &str, items: &[Value]) -> Result<(), Refused> {
    let mut open: Vec<&str> = Vec::new();
    for item in items {
        let text = |key: &str| item[key].as_str().filter(|text| !text.is_empty());
        match kind(item) {
            "message" => check_message(item)?,
            "function_call" => {
                text("name").and(item["arguments"].as_str()).ok_or("invalid_function_call")?;
                open.push(text("call_id").ok_or("missing_call_id")?);
            }
            "function_call_output" => {
                let id = text("call_id").ok_or("missing_call_id")?;
                let at = open.iter().position(|call| *call == id).ok_or("no_tool_call_found")?;
                open.remove(at);
            }
            "compaction" => {
                unsealed(vendor, item).ok_or("invalid_encrypted_content")?;
            }
            "reasoning" | "compaction_trigger" => {}
            _ => return Err("unknown_item"),
        }
    }
    if open.is_empty() { Ok(()) } else { Err("no_tool_output_found") }
}

fn check_message(item: &Value) -> Result<(), Refused> {
    let part = match item["role"].as_str() {
        Some("assistant") => "output_text",
        Some("user" | "system" | "developer") => "input_text",
        _ => return Err("invalid_role"),
    };
    let is_image = |content: &Value| {
        let source = |key: &str| content[key].as_str().is_some_and(|source| !source.is_empty());
        content["type"] == "input_image" && source("detail") && (source("image_url") || source("file_id"))
    };
    let fits = |content: &Value| {
        content["type"] == part && content["text"].is_string() || item["role"] == "user" && is_image(content)
    };
    match &item["content"] {
        Value::String(_) => Ok(()),
        Value::Array(content) if !content.is_empty() && content.iter().all(fits) => Ok(()),
        _ => Err("invalid_content"),
    }
}

fn kind(item: &Value) -> &str {
    item["type"].as_str().unwrap_or("message")
}

/// The facts in these items.
fn facts(vendor: &str, items: &[Value]) -> BTreeSet<String> {
    let mut facts = BTreeSet::new();
    for item in items {
        match unsealed(vendor, item) {
            Some(sealed) => facts.extend(sealed),
            None => {
                let text = item.to_string();
                let found = text
                    .split("FACT-")
                    .skip(1)
                    .map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
                facts.extend(found);
            }
        }
    }
    facts
}

/// The compaction item in the place of these items: their facts in unreadable form, and a checksum.
fn sealed(vendor: &str, items: &[Value]) -> Value {
    let facts = facts(vendor, items).into_iter().collect::<Vec<_>>().join(" ");
    let hex: String = facts.bytes().map(|byte| format!("{:02x}", byte ^ MASK)).collect();
    let sealed = format!("gAAAA{hex}.{:x}", sum(vendor, &hex));
    json!({"type": "compaction", "id": "cmp_1", "encrypted_content": sealed, "created_by": "server"})
}

/// The facts in a compaction item that this vendor sealed. `None` for any other item.
fn unsealed(vendor: &str, item: &Value) -> Option<BTreeSet<String>> {
    let sealed = item["encrypted_content"].as_str().filter(|_| kind(item) == "compaction")?;
    let (hex, given) = sealed.strip_prefix("gAAAA")?.split_once('.')?;
    if given != format!("{:x}", sum(vendor, hex)) {
        return None;
    }
    let bytes = hex
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok().map(|byte| byte ^ MASK));
    let facts = String::from_utf8(bytes.collect::<Option<_>>()?).ok()?;
    Some(facts.split(' ').filter(|fact| !fact.is_empty()).map(str::to_owned).collect())
}

const MASK: u8 = 0x5a;

/// FNV-1a of the vendor's name and the sealed content.
fn sum(vendor: &str, hex: &str) -> u64 {
    let bytes = vendor.bytes().chain(hex.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
