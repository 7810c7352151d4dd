//! Checks of requests.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Refused;
use super::binding::{Chain, holds, mix, prefix};

/// An accepted request, and the results of its check.
pub(super) struct Request<'a> {
    pub(super) body: &'a Value,
    /// Blocks that the model reads: those from the latest compaction block of a threshold on.
    seen: Vec<&'a Value>,
    /// The chain behind the last message.
    pub(super) chain: Chain,
    pub(super) last_thinking: Option<String>,
    pub(super) dropped: Vec<Value>,
    /// The trigger of a compaction, in tokens.
    pub(super) threshold: Option<u64>,
    /// Whether the last turn is a user turn with more than tool results.
    asked: bool,
}

const FIELDS: &[&str] = &[
    "model",
    "max_tokens",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "stop_sequences",
    "stream",
    "output_config",
    "output_format",
    "context_management",
    "compaction",
    "metadata",
];

const ON_DEMAND: &str = "compact-2026-09-04";
const THRESHOLD: &str = "compact-2026-01-12";
const EDITING: &str = "context-management-2025-06-27";
const BINDING: &str = "thinking-binding-controls-2026-08-01";

impl<'a> Request<'a> {
    pub(super) fn check(body: &'a Value, betas: &[&str]) -> Result<Self, Refused> {
        let fields = body.as_object().ok_or(("", "the body is no object"))?;
        if !fields.keys().all(|key| FIELDS.contains(&key.as_str())) {
            return Err(("", "extra inputs are not permitted"));
        }
        if body["model"].as_str().is_none_or(str::is_empty)
            || body["max_tokens"].as_u64().is_none_or(|max| max == 0)
        {
            return Err(("", "model and max_tokens are required"));
        }
        let threshold = check_edits(body, betas)?;
        let messages = body["messages"].as_array().ok_or(("", "messages: an array is required"))?;
        if body.get("compaction").is_some() {
            check_compaction(body, betas)?;
        }
        if messages.is_empty() {
            let asks = body.get("compaction").is_some();
            return Err((
                if asks { "compaction_nothing_to_summarize" } else { "" },
                "messages: at least one is required",
            ));
        }
        let mut reader = Reader::new(body, betas, threshold.is_some())?;
        for (at, message) in messages.iter().enumerate() {
            reader.message(at, message)?;
        }
        let Reader { chain, open, seen, last_thinking, dropped, asked, .. } = reader;
        if !open.is_empty() {
            let code = if body.get("compaction").is_some() { "compaction_incomplete_turn" } else { "" };
            return Err((code, "`tool_use` ids without `tool_result` blocks"));
        }
        Ok(Self { body, seen, chain, last_thinking, dropped, threshold, asked })
    }

    /// Whether the request asks for a summary.
    pub(super) fn asks(&self) -> bool {
        self.body.get("compaction").is_some()
    }

    pub(super) fn pauses(&self) -> bool {
        let edits = self.body.pointer("/context_management/edits").and_then(Value::as_array);
        edits.into_iter().flatten().any(|edit| edit["pause_after_compaction"] == true)
    }

    pub(super) fn thinks(&self) -> bool {
        self.body.get("thinking").is_some_and(|thinking| thinking["type"] != "disabled")
    }

    /// Size of the blocks that the model reads, in tokens.
    pub(super) fn size(&self) -> u64 {
        let bytes: usize = self.seen.iter().map(|block| block.to_string().len()).sum();
        bytes as u64
    }

    fn facts(&self) -> BTreeSet<String> {
        let mut facts = BTreeSet::new();
        self.seen.iter().for_each(|block| facts_in(&block.to_string(), &mut facts));
        facts
    }

    pub(super) fn summary(&self) -> String {
        let facts: Vec<String> = self.facts().into_iter().map(|fact| format!("FACT-{fact}")).collect();
        format!("So far: {}.", facts.join(" "))
    }

    /// Adds the answer of the model: a call of the first tool if the user asked, otherwise a text with the numbers of
    /// blocks and facts. Returns the `stop_reason`.
    pub(super) fn says(&self, content: &mut Vec<Value>) -> &'static str {
        let tool = self.body.pointer("/tools/0/name").filter(|_| self.asked);
        match tool {
            Some(name) => {
                let id = format!("toolu_{:x}", self.chain.sum());
                content.push(json!({"type": "tool_use", "id": id, "name": name, "input": {}}));
                "tool_use"
            }
            None => {
                let text = format!("{} blocks, {} facts", self.seen.len(), self.facts().len());
                content.push(json!({"type": "text", "text": text}));
                "end_turn"
            }
        }
    }
}

/// The facts that a text names.
fn facts_in(text: &str, facts: &mut BTreeSet<String>) {
    let found = text.split("FACT-").skip(1);
    facts.extend(found.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>()));
}

/// Checks the edits. Returns the trigger of a compaction, in tokens.
fn check_edits(body: &Value, betas: &[&str]) -> Result<Option<u64>, Refused> {
    let Some(edits) = body.get("context_management") else { return Ok(None) };
    let edits = edits["edits"].as_array().ok_or(("", "context_management.edits: an array is required"))?;
    let mut threshold = None;
    for (at, edit) in edits.iter().enumerate() {
        let beta = match edit["type"].as_str() {
            Some("clear_thinking_20251015") if at > 0 => {
                return Err(("", "`clear_thinking_20251015` must be the first strategy"));
            }
            Some("clear_thinking_20251015" | "clear_tool_uses_20250919") => EDITING,
            Some("compact_20260112") => {
                let trigger = edit.pointer("/trigger/value").map_or(Some(150_000), Value::as_u64);
                threshold = Some(trigger.ok_or(("", "trigger.value: a number is required"))?);
                THRESHOLD
            }
            _ => return Err(("", "an edit does not match any of the expected tags")),
        };
        if !betas.contains(&beta) {
            return Err(("", "an edit requires its anthropic-beta"));
        }
    }
    match threshold {
        Some(trigger) if trigger < 50_000 => Err(("", "trigger.value must be at least 50000")),
        threshold => Ok(threshold),
    }
}

/// Checks a request for a summary, and the fields that must not be combined with it.
fn check_compaction(body: &Value, betas: &[&str]) -> Result<(), Refused> {
    if !betas.contains(&ON_DEMAND) {
        return Err(("", "`compaction` requires anthropic-beta: compact-2026-09-04"));
    }
    let forced = matches!(body.pointer("/tool_choice/type").and_then(Value::as_str), Some("any" | "tool"));
    let beside = ["context_management", "stop_sequences", "output_format"];
    let format = ["/output_config/format", "/output_config/task_budget/remaining"];
    if forced
        || beside.iter().any(|key| body.get(key).is_some())
        || format.iter().any(|key| body.pointer(key).is_some())
    {
        return Err(("", "this cannot be combined with `compaction`"));
    }
    let compaction = &body["compaction"];
    let instructions = compaction.get("instructions");
    let fits = |text: &Value| {
        text.as_str().is_some_and(|text| !text.trim().is_empty() && text.chars().count() <= 16_384)
    };
    match compaction["type"] == "summarize" && instructions.is_none_or(fits) {
        true => Ok(()),
        false => Err(("", "compaction: invalid")),
    }
}

/// Reads and checks a conversation, block by block.
struct Reader<'a> {
    body: &'a Value,
    on_demand: bool,
    threshold: bool,
    /// Treatment of a thinking block with a wrong signature. `None`: signatures are not checked.
    mismatch: Option<&'a str>,
    chain: Chain,
    role: &'a str,
    /// The calls of the latest turn of the model that have no result.
    open: Vec<&'a str>,
    /// Whether the user turn has content other than tool results.
    spoken: bool,
    asked: bool,
    summaries: usize,
    seen: Vec<&'a Value>,
    last_thinking: Option<String>,
    dropped: Vec<Value>,
}

/// The models that bind thinking.
const BOUND: &[&str] = &["claude-fable-5-1", "claude-opus-5-5", "claude-sonnet-5-5"];

impl<'a> Reader<'a> {
    fn new(body: &'a Value, betas: &[&str], edits: bool) -> Result<Self, Refused> {
        let binding =
            body.pointer("/thinking/block_binding/prefix_mismatch_behavior").and_then(Value::as_str);
        if binding.is_some() && !betas.contains(&BINDING) {
            return Err(("", "block_binding requires its anthropic-beta"));
        }
        let bound = body["model"].as_str().is_some_and(|model| BOUND.contains(&model));
        Ok(Self {
            body,
            on_demand: betas.contains(&ON_DEMAND),
            threshold: betas.contains(&THRESHOLD) && edits,
            mismatch: bound.then_some(binding.unwrap_or("error")),
            chain: Chain::begin(body),
            role: "",
            open: Vec::new(),
            spoken: false,
            asked: false,
            summaries: 0,
            seen: Vec::new(),
            last_thinking: None,
            dropped: Vec::new(),
        })
    }

    fn message(&mut self, at: usize, message: &'a Value) -> Result<(), Refused> {
        let role = match message["role"].as_str() {
            Some(role @ ("user" | "assistant")) => role,
            _ => return Err(("", "role: user or assistant is required")),
        };
        if message.as_object().is_none_or(|fields| fields.len() != 2) {
            return Err(("", "a message: extra inputs are not permitted"));
        }
        if at == 0 && role == "assistant" && message.pointer("/content/0/type") != Some(&json!("compaction"))
        {
            return Err(("", "the first message must use the `user` role"));
        }
        if role != self.role {
            if role == "assistant" && !self.open.is_empty() {
                return Err(("", "`tool_use` ids were found without `tool_result` blocks immediately after"));
            }
            (self.role, self.spoken, self.asked) = (role, false, false);
        }
        match &message["content"] {
            Value::String(text) if !text.is_empty() => {
                self.chain.speaks(role);
                self.chain.says(&json!({"type": "text", "text": text}));
                self.seen.push(&message["content"]);
                self.speak()
            }
            Value::Array(blocks) if !blocks.is_empty() => {
                blocks.iter().enumerate().try_for_each(|(place, block)| self.block((at, place), block))
            }
            _ => Err(("", "content: at least one block is required")),
        }
    }

    /// Reads a text. In a user turn it must come after the tool results.
    fn speak(&mut self) -> Result<(), Refused> {
        if self.role == "user" {
            if !self.open.is_empty() {
                return Err(("", "`tool_result` blocks must come first"));
            }
            (self.spoken, self.asked) = (true, true);
        }
        Ok(())
    }

    fn block(&mut self, (at, place): (usize, usize), block: &'a Value) -> Result<(), Refused> {
        let text = |key: &str| block[key].as_str().filter(|text| !text.is_empty());
        let kind = text("type").ok_or(("", "a block: type is required"))?;
        if kind == "compaction" {
            return self.compaction((at, place), block);
        }
        self.chain.speaks(self.role);
        match kind {
            "text" => {
                text("text").ok_or(("", "text content blocks must be non-empty"))?;
                self.speak()?;
            }
            "thinking" if self.role == "assistant" => return self.thinking((at, place), block),
            "tool_use" if self.role == "assistant" => {
                let id = text("id").ok_or(("", "tool_use.id is required"))?;
                if !block["input"].is_object() || text("name").is_none() || self.open.contains(&id) {
                    return Err(("", "a tool_use is invalid"));
                }
                self.open.push(id);
            }
            "tool_result" if self.role == "user" && !self.spoken => {
                let id = text("tool_use_id").ok_or(("", "tool_use_id is required"))?;
                let call = self.open.iter().position(|call| *call == id);
                self.open.remove(
                    call.ok_or(("", "unexpected `tool_use_id`: it has no corresponding `tool_use`"))?,
                );
            }
            _ => return Err(("", "a block does not match any of the expected tags")),
        }
        self.chain.says(block);
        self.seen.push(block);
        Ok(())
    }

    fn thinking(&mut self, (at, place): (usize, usize), block: &'a Value) -> Result<(), Refused> {
        let signature = block["signature"].as_str().ok_or(("", "thinking.signature is required"))?;
        let fits = holds(signature, self.chain, self.last_thinking.as_deref());
        match self.mismatch {
            Some("drop_block") if !fits => {
                let path = format!("messages.{at}.content.{place}");
                self.dropped.push(
                    json!({"type": "thinking_dropped", "path": path, "reason": "prefix_binding_mismatch"}),
                );
                return Ok(());
            }
            Some(_) if !fits => return Err(("", "a thinking block is bound to a different conversation")),
            _ => {}
        }
        self.last_thinking = Some(signature.to_owned());
        self.seen.push(block);
        Ok(())
    }

    fn compaction(&mut self, place: (usize, usize), block: &'a Value) -> Result<(), Refused> {
        const KNOWN: &[&str] =
            &["type", "content", "signature", "encrypted_content", "tool_changes", "cache_control"];
        let fields = block.as_object().ok_or(("", "a block is no object"))?;
        if !fields.keys().all(|key| KNOWN.contains(&key.as_str())) {
            return Err(("", "compaction: extra inputs are not permitted"));
        }
        if !self.on_demand && !self.threshold {
            return Err(("", "Input tag 'compaction' does not match any of the expected tags"));
        }
        let content = match &block["content"] {
            // A failed compaction has no effect.
            Value::Null => return Ok(()),
            Value::String(content) if !content.is_empty() => content,
            _ => return Err(("", "compaction.content must not be empty")),
        };
        match block["signature"].as_str() {
            Some(signature) if self.on_demand => {
                self.summaries += 1;
                if self.summaries > 1 {
                    return Err(("compaction_block_ambiguous", "more than one compaction block"));
                }
                if place != (0, 0) {
                    return Err(("compaction_block_misplaced", "the compaction block is not first"));
                }
                if self.threshold {
                    return Err(("", "`compact_20260112` cannot run where a signed block is"));
                }
                let summary = Summary::read(content, &block["tool_changes"], signature)?;
                self.chain = match summary.prefix == prefix(self.body) {
                    true => Chain::resume(summary.chain),
                    false => Chain::begin(self.body),
                };
            }
            Some(_) => return Err(("", "`signature` requires anthropic-beta: compact-2026-09-04")),
            None if self.threshold => {
                self.seen.clear();
                self.chain = Chain::of_summary(self.body, content);
                self.chain.speaks(self.role);
                self.chain.says(block);
            }
            None => {
                return Err((
                    "",
                    "`compaction` blocks require a `compact_20260112` strategy in `context_management.edits`",
                ));
            }
        }
        self.seen.push(block);
        Ok(())
    }
}

/// Content of the signature of a compaction block, after its check: the place in the conversation. The signature also
/// has the checksums of the block's content and tool changes.
pub(super) struct Summary {
    prefix: u64,
    chain: u64,
}

impl Summary {
    /// The signed compaction block with this summary.
    pub(super) fn sign(summary: &str, request: &Request<'_>) -> Value {
        let changes = json!([{"tool": "none", "weight": 1.50}]);
        let numbers = [
            prefix(request.body),
            request.chain.sum(),
            mix(3, summary.as_bytes()),
            mix(4, changes.to_string().as_bytes()),
        ];
        let body: Vec<String> = numbers.iter().map(|number| format!("{number:x}")).collect();
        let body = body.join("-");
        let signature = format!("{body}-{:x}", mix(5, body.as_bytes()));
        json!({"type": "compaction", "content": summary, "signature": signature, "tool_changes": changes})
    }

    fn read(content: &str, changes: &Value, signature: &str) -> Result<Self, Refused> {
        let invalid = ("compaction_signature_invalid", "the signature is not what was returned");
        let (body, sum) = signature.rsplit_once('-').ok_or(invalid)?;
        if format!("{:x}", mix(5, body.as_bytes())) != sum {
            return Err(invalid);
        }
        let numbers: Result<Vec<u64>, _> = body.split('-').map(|hex| u64::from_str_radix(hex, 16)).collect();
        let Ok([prefix, chain, of_content, of_changes]) = <[u64; 4]>::try_from(numbers.map_err(|_| invalid)?)
        else {
            return Err(invalid);
        };
        if mix(3, content.as_bytes()) != of_content {
            return Err(("compaction_content_mismatch", "the content is not what was returned"));
        }
        if mix(4, changes.to_string().as_bytes()) != of_changes {
            return Err(("compaction_tool_changes_mismatch", "the tool changes are not what was returned"));
        }
        Ok(Self { prefix, chain })
    }
}
