//! The members of a line outside of its message.

use std::borrow::Cow;

use crate::WireError;
use crate::expect::{expect_object, number, optional_text};
use crate::json::{self, Spans, ValueKind};

/// The members of a line that the forest needs.
#[derive(Debug, Default)]
pub(super) struct Line<'a> {
    pub(super) uuid: Option<Cow<'a, str>>,
    pub(super) parent: Option<Cow<'a, str>>,
    /// The last line before a compaction.
    pub(super) logical: Option<Cow<'a, str>>,
    pub(super) is_side: bool,
    /// The message, if a model sees it.
    pub(super) message: Option<&'a str>,
    pub(super) boundary: Option<Boundary<'a>>,
    pub(super) is_summary: bool,
    /// The title of a conversation, and its last line.
    pub(super) title: Option<(Cow<'a, str>, Cow<'a, str>)>,
}

/// A boundary of a compaction by the tool.
#[derive(Debug, Default)]
pub(super) struct Boundary<'a> {
    pub(super) trigger: Cow<'a, str>,
    pub(super) tokens_before: Option<u64>,
}

impl<'a> Line<'a> {
    /// Reads a line, and adds its long values to `spans`.
    pub(super) fn of(spans: &mut Spans, raw: &'a str) -> Result<Self, WireError> {
        expect_object(raw, "a line")?;
        let names = &[
            "type",
            "uuid",
            "parentUuid",
            "logicalParentUuid",
            "isSidechain",
            "message",
            "subtype",
            "compactMetadata",
            "isCompactSummary",
            "isApiErrorMessage",
            "summary",
            "leafUuid",
        ];
        let [kind, uuid, parent, logical, side, message, subtype, compact, is_summary, failed, summary, leaf] =
            json::noted_fields(spans, raw, names)?;
        let speaks = matches!(kind, Some("\"user\"" | "\"assistant\"")) && failed != Some("true");
        let mut line = Self {
            uuid: optional_text(raw, uuid, "uuid")?,
            parent: optional_text(raw, parent, "parentUuid")?,
            logical: optional_text(raw, logical, "logicalParentUuid")?,
            is_side: side == Some("true"),
            message: message.filter(|message| speaks && ValueKind::of(message) == ValueKind::Object),
            is_summary: is_summary == Some("true"),
            ..Self::default()
        };
        if subtype == Some("\"compact_boundary\"") {
            line.boundary = Some(Boundary::of(raw, compact)?);
        }
        if kind == Some("\"summary\"") {
            let (title, leaf) =
                (optional_text(raw, summary, "summary")?, optional_text(raw, leaf, "leafUuid")?);
            line.title = title.zip(leaf);
        }
        Ok(line)
    }
}

impl<'a> Boundary<'a> {
    fn of(raw: &str, metadata: Option<&'a str>) -> Result<Self, WireError> {
        let Some(metadata) = metadata.filter(|metadata| ValueKind::of(metadata) == ValueKind::Object) else {
            return Ok(Self::default());
        };
        json::nested(raw, metadata, "/compactMetadata", |metadata| {
            let [trigger, before] = json::fields(metadata, &["trigger", "preTokens"])?;
            let trigger = optional_text(metadata, trigger, "trigger")?.unwrap_or_default();
            Ok(Self { trigger, tokens_before: number(before) })
        })
    }
}
