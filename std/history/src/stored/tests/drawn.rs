//! Any message is read as it was written, and no text makes the reader panic.

use proptest::collection::vec;
use proptest::option;

use super::*;

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(message in message()) {
        let text = encode(&message).unwrap();
        prop_assert!(!text.contains('\n'));
        prop_assert_eq!(decode(&text).unwrap(), message);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,80}", message in message(), cut in any::<prop::sample::Index>()) {
        let _ = decode(&text);
        let whole = encode(&message).unwrap();
        let cut = cut.index(whole.len());
        if whole.is_char_boundary(cut) {
            prop_assert!(decode(&whole[..cut]).is_err());
        }
    }
}

fn text() -> impl Strategy<Value = Str> {
    prop_oneof![".{0,12}", Just(String::new()), Just("\"\\\u{0}\u{7f}\u{2028}\u{10ffff}".to_owned())]
        .prop_map(Str::from)
}

fn media() -> impl Strategy<Value = Part> {
    let kind = prop_oneof![
        Just(MediaKind::Image),
        Just(MediaKind::Audio),
        Just(MediaKind::Video),
        Just(MediaKind::Document)
    ];
    let source = prop_oneof![text().prop_map(MediaSource::Base64), text().prop_map(MediaSource::Uri)];
    let numbers = (any::<Option<(u32, u32)>>(), any::<Option<u32>>(), any::<Option<u32>>(), any::<bool>());
    (kind, text(), source, numbers).prop_map(|(kind, mime, source, (pixels, millis, pages, low_detail))| {
        let mut media = Media::new(kind, mime, source);
        media.extent.pixels = pixels;
        media.extent.millis = millis;
        media.extent.pages = pages;
        media.extent.low_detail = low_detail;
        Part::Media(media)
    })
}

fn leaf() -> impl Strategy<Value = Part> {
    let kind = prop_oneof![Just(CallKind::Function), Just(CallKind::Hosted)];
    let approval = || (text(), text()).prop_map(|(id, call)| Approval::new(id, call));
    prop_oneof![
        text().prop_map(Part::Text),
        (option::of(text()), text(), option::of(text())).prop_map(|(id, text, opaque)| {
            let mut reasoning = Reasoning::new(text);
            (reasoning.id, reasoning.opaque) = (id, opaque);
            Part::Reasoning(reasoning)
        }),
        (text(), text(), text(), kind).prop_map(|(id, name, arguments, kind)| {
            let mut call = ToolCall::new(id, name, arguments);
            call.kind = kind;
            Part::ToolCall(call)
        }),
        media(),
        approval().prop_map(Part::ApprovalRequest),
        (approval(), any::<bool>())
            .prop_map(|(approval, approved)| Part::ApprovalResponse(ApprovalAnswer::new(approval, approved))),
        (text(), text(), text(), option::of(text()), option::of(any::<u32>())).prop_map(
            |(provider, model, text, opaque, tokens)| {
                let mut compaction = CompactionPart::new(provider, text, opaque);
                (compaction.model, compaction.tokens) = (model, tokens.map(Tokens));
                Part::Compaction(compaction)
            }
        ),
        (text(), text(), text())
            .prop_map(|(format, kind, raw)| Part::Unknown(UnknownPart::new(format, kind, raw))),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    leaf().prop_recursive(3, 12, 3, |inner| {
        (text(), vec(inner, 0..3), any::<bool>()).prop_map(|(call_id, parts, is_error)| {
            let mut result = ToolResult::new(call_id, parts);
            result.is_error = is_error;
            Part::ToolResult(result)
        })
    })
}

fn attribution() -> impl Strategy<Value = Attribution> {
    let source = prop_oneof![
        Just(SourceKind::Caller),
        Just(SourceKind::History),
        Just(SourceKind::Context),
        Just(SourceKind::Tool),
        Just(SourceKind::Compaction)
    ];
    let authority = role().prop_map(Role::authority);
    let retention = prop_oneof![Just(Retention::Pinned), Just(Retention::Normal), Just(Retention::Ephemeral)];
    let ranges = vec(
        any::<(u64, u64)>().prop_map(|(first, last)| SeqRange { first: Seq(first), last: Seq(last) }),
        0..3,
    );
    (text(), source, authority, retention, ranges, option::of(text())).prop_map(
        |(source_id, source, authority, retention, derived_from, label)| {
            let mut attribution = Attribution::new(source_id, source, authority)
                .with_retention(retention)
                .with_derived_from(derived_from);
            attribution.label = label;
            attribution
        },
    )
}

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![
        Just(Role::System),
        Just(Role::Developer),
        Just(Role::User),
        Just(Role::Assistant),
        Just(Role::Tool)
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let ids = (option::of(text()), option::of(text()), option::of(text()));
    let wire = option::of((text(), text(), any::<bool>()));
    (role(), vec(part(), 0..4), attribution(), ids, wire).prop_map(|(role, parts, attribution, ids, wire)| {
        let mut message = Message::new(role, parts).with_attribution(attribution);
        if let Some(id) = ids.0 {
            message = message.with_id(id);
        }
        if let Some(id) = ids.1 {
            message = message.with_response_id(id);
        }
        if let Some(name) = ids.2 {
            message = message.with_name(name);
        }
        match wire {
            Some((format, text, touched)) => {
                let mut wire = WireText::new(format, text).with_rejoin(touched);
                wire.touched = touched;
                message.with_wire(wire)
            }
            None => message,
        }
    })
}
