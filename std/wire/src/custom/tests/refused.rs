//! Refusals of a text, of a change and of a reader, and their errors.

use super::*;

#[test]
fn errors_name_the_place_and_not_what_was_said() {
    let kind = |text: &str| {
        let error = read(text, &ReadOptions::default().with_from(Format::Custom(&DESK))).unwrap_err();
        (error.kind(), error.line(), error.path().to_owned(), error.to_string())
    };
    let (found, line, path, said) =
        kind("[{\"by\":\"person\"},\n {\"by\":\"person\",\n \"got\":\"a secret \\\" text\"}]");
    assert_eq!((found, line, &*path), (WireErrorKind::Shape, Some(3), "/1"), "{said}");
    assert!(!said.contains("secret") && said.contains("struct Got"), "{said}");
    let (found, line, _, said) = kind("{\"by\":\"person\"}\n{\"by\":\"ghost\"}");
    assert_eq!((found, line), (WireErrorKind::UnknownRole, Some(2)), "{said}");
    assert_eq!(kind(r#"{"log":[],"log":[]}"#).0, WireErrorKind::DuplicateKey);
    assert_eq!(kind(r#"{"log":7}"#).0, WireErrorKind::Shape);
    assert_eq!(kind("{\"by\":\"person\"}\n{\"by\"").1, Some(2));
}

#[test]
fn values_and_places_within_a_record_are_told_as_those_of_the_text() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is only read")]
    #[serde(rename_all = "snake_case", deny_unknown_fields)]
    enum Word {
        Known { size: u8 },
    }
    for (text, says) in [
        (r#""a secret, expected of nobody""#, "unknown variant, expected `known`"),
        (r#"{"known":{"size":4242}}"#, "invalid value, expected u8"),
        (r#"{"known":{"size":"4242"}}"#, "invalid type, expected u8"),
        (r#"{"known":{"secret":1}}"#, "unknown field, expected `size`"),
        (r#"{"known":{}}"#, "missing field `size`"),
    ] {
        let error = parse::<Word>(text).unwrap_err().to_string();
        assert!(error.ends_with(says), "{error}");
    }
    let record = "{\n \"does\": [\n  {\"known\":\n   {\"size\": true}}]}";
    let value = &record[record.find("{\"known").unwrap()..record.len() - 2];
    let error = parse_in::<Word>(record, value).unwrap_err().positioned(record, 1);
    let found = record.find("true").unwrap();
    assert!((found..found + 5).contains(&error.offset().unwrap()), "{error}");
    assert_eq!(error.line(), Some(4), "{error}");
}

#[test]
fn changes_that_the_places_cannot_say_are_refused() {
    fn list<'a>(source: &Arc<str>, record: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
        let [outer, first, second]: [&RawValue; 3] = parse(record)?;
        let (outer, each) = (outer.get(), [first.get(), second.get()]);
        let parts = match outer {
            // Elements that are not in the list.
            "[]" => each.map(|raw| RecordPart::text(source, Some(raw)).unwrap().with_element(outer, raw)),
            // A slot within another.
            _ => [outer, outer.get(1..outer.len() - 1).unwrap()]
                .map(|raw| RecordPart::new(text(raw)).with_slot(Some(raw), SlotForm::Value)),
        };
        Ok(vec![RecordMessage::new(Role::User, record).with_parts(parts)])
    }
    static LIST: FormatSpec = FormatSpec::new("list", "", |_| Fit::No, list);
    let refused = |record: &str, now: Vec<Part>| {
        let mut transcript =
            read(format!("[{record}]"), &ReadOptions::default().with_from(Format::Custom(&LIST))).unwrap();
        set(&mut transcript, 0, now);
        written(&transcript).unwrap_err().kind()
    };
    assert_eq!(refused(r#"[[], "a", "b"]"#, vec![text("a")]), WireErrorKind::Unsupported);
    assert_eq!(refused(r#"[["a"], "b", "c"]"#, vec![text("x"), text("y")]), WireErrorKind::Unsupported);

    fn fixed<'a>(_: &Arc<str>, record: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
        let part = RecordPart::new(text("a")).with_slot(Some(record), SlotForm::Constant("{}"));
        Ok(vec![RecordMessage::new(Role::User, record).with_parts([part])])
    }
    static FIXED: FormatSpec = FormatSpec::new("fixed", "", |_| Fit::No, fixed);
    let mut transcript = read("[{}]", &ReadOptions::default().with_from(Format::Custom(&FIXED))).unwrap();
    set(&mut transcript, 0, vec![text("b")]);
    assert_eq!(written(&transcript).unwrap_err().kind(), WireErrorKind::Unsupported);

    // The failure of the tool is stored elsewhere.
    let mut transcript = read(texts()[0].as_str(), &options()).unwrap();
    let mut failed = ToolResult::new("b", vec![text("none")]);
    failed.is_error = true;
    set(&mut transcript, 3, vec![Part::ToolResult(failed)]);
    assert_eq!(written(&transcript).unwrap_err().kind(), WireErrorKind::Unsupported);
    let failed = RecordPart::tool_result(&Arc::from("\"x\""), "a", None).with_error(true);
    assert!(matches!(failed.part, Part::ToolResult(result) if result.is_error));
}

#[test]
fn a_value_from_elsewhere_is_refused() {
    fn wrong<'a>(source: &Arc<str>, record: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
        Ok(vec![
            RecordMessage::new(Role::User, record).with_parts(RecordPart::text(source, Some("\"constant\""))),
        ])
    }
    static WRONG: FormatSpec = FormatSpec::new("wrong", "", sign, wrong);
    let error = read(LOG[0], &ReadOptions::default().with_from(Format::Custom(&WRONG))).unwrap_err();
    assert!(error.to_string().contains("the reader of wrong named a value that is not a slice"), "{error}");
}

#[test]
fn a_record_that_is_not_json_is_not_written() {
    fn half(_: &Message, _: Option<&str>) -> Result<String, WireError> {
        Ok("{".to_owned())
    }
    fn inside<'a>(_: &Arc<str>, record: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
        let part = RecordPart::new(text("a")).with_slot(record.get(1..3), SlotForm::Text);
        Ok(vec![RecordMessage::new(Role::User, record).with_parts([part])])
    }
    static HALF: FormatSpec = FormatSpec::new("half", "", sign, desk).with_new_record(half);
    static INSIDE: FormatSpec = FormatSpec::new("inside", "", sign, inside);
    let mut transcript = read(LOG[0], &ReadOptions::default().with_from(Format::Custom(&HALF))).unwrap();
    transcript.conversations_mut()[0]
        .entries
        .push(TranscriptEntry::new(Message::new(Role::User, vec![text("b")])));
    assert_eq!(written(&transcript).unwrap_err().kind(), WireErrorKind::Unsupported);
    let mut transcript = read(LOG[0], &ReadOptions::default().with_from(Format::Custom(&INSIDE))).unwrap();
    set(&mut transcript, 0, vec![text("b")]);
    assert_eq!(written(&transcript).unwrap_err().kind(), WireErrorKind::Unsupported);
}
