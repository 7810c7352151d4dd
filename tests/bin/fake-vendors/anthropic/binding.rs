//! Binding of thinking blocks: to the system prompt, the tools, and all messages before the block.

use serde_json::{Value, json};

/// Checksum of the beginning of a conversation. Messages of one role that follow each other are one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chain {
    sum: u64,
    speaker: u64,
}

impl Chain {
    /// The chain before the first message.
    pub(super) fn begin(request: &Value) -> Self {
        Self { sum: prefix(request), speaker: 0 }
    }

    /// The chain behind messages with this `sum`, if system prompt and tools have not changed.
    pub(super) const fn resume(sum: u64) -> Self {
        Self { sum, speaker: 0 }
    }

    /// The chain behind an unsigned summary, which stands where the server put it.
    pub(super) fn of_summary(request: &Value, summary: &str) -> Self {
        Self { sum: mix(prefix(request), summary.as_bytes()), speaker: 0 }
    }

    pub(super) fn speaks(&mut self, role: &str) {
        let speaker = mix(1, role.as_bytes());
        if speaker != self.speaker {
            (self.speaker, self.sum) = (speaker, mix(self.sum, role.as_bytes()));
        }
    }

    pub(super) fn says(&mut self, block: &Value) {
        let mut block = block.clone();
        if let Some(fields) = block.as_object_mut() {
            fields.remove("cache_control");
        }
        self.sum = mix(self.sum, block.to_string().as_bytes());
    }

    pub(super) const fn sum(self) -> u64 {
        self.sum
    }
}

/// Checksum of the system prompt and the tools.
pub(super) fn prefix(request: &Value) -> u64 {
    let both = json!([request.get("system"), request.get("tools")]);
    mix(0xcbf2_9ce4_8422_2325, both.to_string().as_bytes())
}

/// The signature of a thinking block behind `chain`. `last` is the signature of the thinking block before it.
pub(super) fn signature(chain: Chain, last: Option<&str>) -> String {
    format!("{:x}.{:x}", chain.sum, mix(7, last.unwrap_or_default().as_bytes()))
}

/// Whether a thinking block with this signature is valid behind `chain`. Either all earlier thinking blocks are
/// missing, or none.
pub(super) fn holds(given: &str, chain: Chain, last: Option<&str>) -> bool {
    let own = signature(chain, last);
    let chain_of = |signature: &str| signature.split('.').next().map(str::to_owned);
    given == own || last.is_none() && chain_of(given) == chain_of(&own)
}

/// FNV-1a.
pub(super) fn mix(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)).rotate_left(7)
}
