//! A system prompt next to the list, and reports of usage.

use epitome_core::Usage;

use super::*;

/// Questions, each with its answer: `{"rules/1":"..","log":[{"ask":"..","say":"..","cost":{..}}]}`.
static PAIRS: FormatSpec = FormatSpec::new("pairs", "log", pair_sign, pair).with_system("rules/1");

#[derive(Deserialize)]
struct Pair<'a> {
    #[serde(borrow)]
    ask: &'a RawValue,
    #[serde(borrow)]
    say: &'a RawValue,
    #[serde(borrow)]
    cost: Option<&'a RawValue>,
}

fn pair_sign(sample: &Sample<'_>) -> Fit {
    if sample.all_are::<Pair<'_>>() { Fit::Certain("its records have `ask` and `say`") } else { Fit::No }
}

fn pair<'a>(source: &Arc<str>, record: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    let found: Pair<'a> = parse(record)?;
    let message = |role, raw: &'a RawValue| {
        let absent = |part: RecordPart<'a>| part.with_absence(Some(raw.get()), "\"\"");
        RecordMessage::new(role, raw.get()).with_parts(RecordPart::text(source, Some(raw.get())).map(absent))
    };
    let answer = message(Role::Assistant, found.say);
    let answer = match found.cost {
        Some(cost) => answer.with_usage(crate::usage::of(cost.get())?),
        None => answer,
    };
    Ok(vec![message(Role::User, found.ask), answer])
}

fn pairs(text: &str) -> Result<Transcript, WireError> {
    read(text, &ReadOptions::default().with_from(Format::Custom(&PAIRS)))
}

fn roles(transcript: &Transcript) -> Vec<Role> {
    transcript.conversations()[0].messages().map(Message::role).collect()
}

const LIST: &str =
    r#"[{"ask":"a","say":"b"}, {"ask":"c","say":"d","cost":{"input_tokens":40,"output_tokens":9}}]"#;

const ALL: [Role; 5] = [Role::System, Role::User, Role::Assistant, Role::User, Role::Assistant];

/// The list in an object, with this member before it or after it.
fn objects(member: &str) -> [String; 2] {
    [format!(r#"{{"v":1, {member},"log":{LIST}}}"#), format!(r#"{{"log" : {LIST} , {member} }}"#)]
}

#[test]
fn a_text_beside_the_list_is_a_system_message() {
    for text in objects(r#""rules\/1":"Be 日本 \ud83d 1.50""#) {
        let found = read(text.as_str(), &ReadOptions::default().with_format(&PAIRS)).unwrap();
        assert_eq!(roles(&found), ALL);
        assert_eq!(parts(&found)[0], [super::text("Be 日本 \u{fffd} 1.50")]);
        assert_eq!(written(&found).unwrap(), text);
        // The same parts again change nothing.
        let mut same = found.clone();
        let was = parts(&same).swap_remove(0);
        set(&mut same, 0, was);
        assert_eq!(written(&same).unwrap(), text);
        let mut changed = found;
        set(&mut changed, 0, vec![super::text("Be \"brief\".")]);
        let expected = text.replace(r#""Be 日本 \ud83d 1.50""#, r#""Be \"brief\".""#);
        assert_eq!(written(&changed).unwrap(), expected);
    }
}

#[test]
fn a_system_message_is_left_out_with_its_key_and_not_without_its_part() {
    let [before, behind] = objects(r#""rules/1":"Be brief.""#);
    for (text, left) in
        [(before, format!(r#"{{"v":1,"log":{LIST}}}"#)), (behind, format!(r#"{{"log" : {LIST} }}"#))]
    {
        let mut without = pairs(&text).unwrap();
        without.conversations_mut()[0].entries.remove(0);
        assert_eq!(written(&without).unwrap(), left);
        // The list is written as it would be without the prompt.
        let mut shorter = pairs(&text).unwrap();
        shorter.conversations_mut()[0].entries.truncate(3);
        assert_eq!(roles(&pairs(&written(&shorter).unwrap()).unwrap()), ALL[..3]);
        let mut empty = pairs(&text).unwrap();
        set(&mut empty, 0, Vec::new());
        assert_eq!(written(&empty).unwrap_err().kind(), WireErrorKind::Unsupported);
    }
}

#[test]
fn without_a_text_there_is_no_system_message() {
    let none = [r#""rules/1":"""#, r#""rules/1":null"#, r#""rules":"Be brief.""#];
    for text in none.into_iter().flat_map(objects) {
        let mut found = pairs(&text).unwrap();
        assert_eq!(roles(&found), ALL[1..], "{text}");
        found.conversations_mut()[0].entries.drain(..2);
        let left = text.replace(r#"{"ask":"a","say":"b"}, "#, "");
        assert_eq!(written(&found).unwrap(), left);
    }
    for text in [LIST.to_owned(), LIST.replace("}, {", "}\n{").replace(['[', ']'], "")] {
        assert_eq!(roles(&pairs(&text).unwrap()), ALL[1..], "{text}");
    }
}

#[test]
fn a_prompt_that_is_no_text_or_there_twice_is_refused() {
    for value in ["7", "[]", r#"{"text":"a secret"}"#, "true"] {
        for text in objects(&format!("\n\"rules/1\":{value}")) {
            let error = pairs(&text).unwrap_err();
            let found = (error.kind(), error.line(), error.path());
            assert_eq!(found, (WireErrorKind::Shape, Some(2), "/rules~11"), "{error}");
            assert!(error.to_string().contains("expected a text") && !error.to_string().contains("secret"));
        }
    }
    for text in objects(r#""rules/1":"a","rules/1":"b""#) {
        assert_eq!(pairs(&text).unwrap_err().kind(), WireErrorKind::DuplicateKey, "{text}");
    }
    // Other fields of the object are ignored.
    for text in objects(r#""rest":"a","rest":7"#) {
        assert_eq!(written(&pairs(&text).unwrap()).unwrap(), text);
    }
}

#[test]
fn a_report_is_that_of_the_message_which_has_it() {
    let expected = |at| {
        [(
            at,
            Usage::anthropic(epitome_core::AnthropicTokens {
                input: Some(40),
                output: Some(9),
                ..Default::default()
            }),
        )]
    };
    let of = |text: &str| {
        let found = pairs(text).unwrap();
        let usage = &found.conversations()[0].usage;
        usage.iter().map(|entry| (entry.at, entry.usage)).collect::<Vec<_>>()
    };
    assert_eq!(of(LIST), expected(3));
    for text in objects(r#""rules/1":"Be brief.""#) {
        assert_eq!(of(&text), expected(4));
    }
    let lines = LIST.replace("}, {", "}\n{").replace(['[', ']'], "");
    assert_eq!(of(&lines), expected(3));
    let mut records = SessionLines::new(lines.as_bytes(), Format::Custom(&PAIRS)).unwrap();
    let first = records.next_record().unwrap().unwrap();
    let second = records.next_record().unwrap().unwrap();
    assert_eq!((first.usage, second.usage), (None, Some(expected(0)[0].1)));
    let error = pairs(&LIST.replace("\"input_tokens\"", "\"coins\"")).unwrap_err();
    assert_eq!((error.kind(), error.path()), (WireErrorKind::Shape, "/1"));
}

#[test]
fn a_prompt_needs_an_object_and_a_key_of_its_own() {
    for (list, key) in [("", "rules"), ("log", ""), ("log", "log")] {
        let made =
            std::panic::catch_unwind(|| FormatSpec::new("made", list, pair_sign, pair).with_system(key));
        assert!(made.is_err(), "{list:?} {key:?}");
    }
}
