//! Each form of a strategy is written and read again; an invalid form is refused with the nearest valid name.

use std::format;
use std::string::{String, ToString as _};
use std::vec::Vec;

use epitome_core::message::{MediaKind, Role};
use epitome_core::{
    Budget, ClassEstimator, IndexBuf, OpenCallTree, Outcome, PartSpan, Pass, Planner, Profile, Span,
    Strategy as _, Tokens, count_message, count_part,
};
use epitome_std::message::{self, Media, MediaSource, Message, ToolCall};
use proptest::prelude::*;

use super::table::{Kind, STAGES, StageRow};
use super::*;

fn refused(text: &str) -> String {
    text.parse::<StrategySpec>().unwrap_err().to_string()
}

#[test]
fn stages_and_parameters_are_read_in_any_spelling() {
    let spec = |text: &str| text.parse::<StrategySpec>().unwrap();
    let full = "tool-results:keep=5:clear-at-least=900:exclude-tools=search:exclude-tools=ask:clear-inputs";
    assert_eq!(spec("tool_results:inputs:spare=search:keep=5:spare=ask:at-least=900").to_string(), full);
    assert_eq!(
        spec("truncate:recent=4, window:turns=8,window").stages(),
        ["truncate:preserve-recent=4", "window:keep-turns=8", "window"]
    );
    assert_eq!(spec("truncate:strength=conservative"), spec(" truncate : strength = light "));
    assert_eq!(spec("window:first-user=false").to_string(), "window:preserve-first-user=false");
    assert_eq!(spec("truncate"), StrategySpec::default());
    assert_eq!(spec("truncate:recent=4294967296").to_string(), "truncate:preserve-recent=4294967295");
    assert_eq!(spec(r"supersede:only=a\:b\|c\,\\").to_string(), r"supersede:only-tools=a\:b\|c\,\\");
    assert!(spec("ephemeral | summarize").summarizes() && !spec("tool-digest").summarizes());
    assert!(spec("context-window:window=9:output=1:summarize").summarizes());
    assert!(spec("supersede | truncate").needs_texts() && !spec("truncate").needs_texts());
}

#[test]
fn what_is_wrong_names_what_is_nearest() {
    for (text, message) in [
        ("", "stage 1 is empty; known: truncate, window, tool-results"),
        ("truncate | ", "stage 2 is empty"),
        ("truncate,,window", "stage 2 is empty"),
        ("trunkate", "there is no strategy \"trunkate\"; the nearest is truncate; known: truncate, window"),
        (
            "tool-results:kep=3",
            "tool-results has no parameter \"kep\"; the nearest is keep; known: keep, clear",
        ),
        ("tool-results:", "tool-results has no parameter \"\""),
        ("ephemeral:keep=1", "ephemeral has no parameter \"keep\"; known: none"),
        ("truncate:recent=x", "truncate: preserve-recent cannot be \"x\"; known: a number"),
        ("truncate:recent=-1", "truncate: preserve-recent cannot be \"-1\""),
        ("truncate:recent=+1", "truncate: preserve-recent cannot be \"+1\""),
        ("window:turns", "window: keep-turns cannot be \"\""),
        ("window:tokens=18446744073709551616", "window: keep-tokens cannot be"),
        (
            "truncate:strength=moderat",
            "truncate: strength cannot be \"moderat\"; the nearest is moderate; known: light",
        ),
        ("truncate:system=no", "truncate: preserve-system cannot be \"no\"; known: true, false"),
        ("tool-results:spare=", "tool-results: exclude-tools cannot be \"\"; known: the name of a tool"),
        ("tool-results:keep=1:keep=1", "tool-results: keep is there twice"),
        ("truncate:recent=1:preserve_recent=1", "truncate: preserve-recent is there twice"),
        ("clamp", "clamp needs its max-part-tokens: clamp:max-part-tokens=..."),
        ("reasoning:keep=1", "reasoning needs its profile"),
        ("window:turns=1:groups=2", "window: take keep-turns or keep-groups, not both"),
        (
            "context-window:window=9:max-output=9",
            "context-window: max-output cannot be \"9\"; known: a number below the window of 9",
        ),
        (
            "summarize | truncate",
            "summarize has to come last: what follows it would drop its summaries in the pass after; write truncate | summarize",
        ),
        (
            "ephemeral|tool-digest:keep=2, truncate:recent=1,tool-results",
            "tool-digest has to come last: what follows it would drop its summaries in the pass after; \
             write ephemeral | truncate:preserve-recent=1 | tool-results | tool-digest:keep=2",
        ),
        (
            "tool-digest | summarize",
            "tool-digest has to come last: what follows it would drop its summaries in the pass after; \
             take tool-digest or summarize, not both",
        ),
        (
            "context-window:window=9:output=1:summarize | truncate",
            "context-window has to come last: what follows it would drop its summaries in the pass after; \
             write truncate | context-window:window=9:max-output=1:summarize",
        ),
    ] {
        let refused = refused(text);
        assert!(refused.starts_with(message), "{text}: {refused}");
    }
    assert!(refused(&"truncate|".repeat(20)).starts_with("there are more than 16 stages"));
    assert!(refused(&"ä".repeat(100_000)).len() < 500, "what was given is not repeated at length");
}

#[test]
fn a_document_of_another_form_is_refused() {
    for (json, message) in [
        ("3", "expected a table with the name of a strategy"),
        ("[]", "stage 1 is empty"),
        ("[[]]", "expected a table"),
        ("{}", "expected a name at"),
        (r#"{"strategy": 3}"#, "expected a name at"),
        (r#"{"strategy": "truncat"}"#, "there is no strategy \"truncat\"; the nearest is truncate"),
        (
            r#"{"strategy": "truncate", "recnt": 3}"#,
            "truncate has no parameter \"recnt\"; the nearest is preserve-recent",
        ),
        (r#"{"strategy": "tool-results", "keep": 1.5}"#, "tool-results: keep cannot be"),
        (r#"{"strategy": "tool-results", "keep": -1}"#, "tool-results: keep cannot be"),
        (r#"{"strategy": "tool-results", "keep": null}"#, "tool-results: keep cannot be"),
        (r#"{"strategy": "tool-results", "spare": [3]}"#, "tool-results: exclude-tools cannot be"),
        (r#"{"strategy": "tool-results", "inputs": 1}"#, "tool-results: clear-inputs cannot be \"1\""),
        (r#"{"strategy": "tool-results", "inputs": 2}"#, "tool-results: clear-inputs cannot be \"2\""),
        (r#"["truncate", "truncat"]"#, "there is no strategy \"truncat\"; the nearest is truncate"),
        (r#"["truncate | window"]"#, "expected one strategy in each text of a list"),
        (r#"["truncate", ""]"#, "stage 2 is empty"),
        (r#"["tool-digest", "truncate"]"#, "tool-digest has to come last"),
        (r#"{"strategy": "tool-results", "inputs": 0}"#, "tool-results: clear-inputs cannot be \"0\""),
    ] {
        let refused = serde_json::from_str::<StrategySpec>(json).unwrap_err().to_string();
        assert!(refused.starts_with(message), "{json}: {refused}");
    }
}

#[test]
fn every_row_makes_its_strategy() {
    let made = |row: &StageRow| {
        let said = row.parameters.iter().filter(|parameter| parameter.must).zip((0..=9).rev());
        let said = said.map(|(parameter, number)| match parameter.kind {
            Kind::Word(words) => format!(":{}={}", parameter.name, words[0][0]),
            _ => format!(":{}={number}", parameter.name),
        });
        let text = said.fold(row.name.to_string(), |text, said| text + &said);
        text.parse::<StrategySpec>().unwrap().strategy(SpecTexts::default()).name()
    };
    let names: Vec<_> = STAGES.iter().map(made).collect();
    let expected = [
        "truncate",
        "window",
        "clear_tool_results",
        "drop_tool_exchanges",
        "digest_tool_exchanges",
        "clear_media",
        "clear_reasoning",
        "clamp_oversized",
        "supersede",
        "ephemeral_first",
        "summarize",
        "salience",
        "chat",
        "ledger",
        "agent",
        "context_window",
    ];
    assert_eq!(names, expected);
    let profiles = STAGES.iter().flat_map(|row| row.parameters).find(|parameter| parameter.name == "profile");
    let Kind::Word(words) = &profiles.unwrap().kind else { panic!("words") };
    assert_eq!(words.iter().map(|word| word[0]).collect::<Vec<_>>(), Profile::ALL.map(Profile::as_str));
}

/// Any strategy with any of its parameters, as text in any order and spelling.
fn stage(last: bool) -> impl Strategy<Value = String> {
    let rows: Vec<_> = STAGES
        .iter()
        .filter(|row| last || !matches!(row.name, "summarize" | "tool-digest" | "ledger" | "agent"))
        .collect();
    (prop::sample::select(rows), any::<u64>(), any::<[bool; 6]>(), "[a-z:|,\\\\ =ä]{1,6}").prop_map(
        move |(row, number, which, tool)| {
            let mut alternative = false;
            let mut text = row.name.to_string();
            for (parameter, said) in row.parameters.iter().zip(which) {
                let excluded = parameter.alternative && alternative;
                alternative |= parameter.alternative && said;
                if !(said || parameter.must) || excluded || parameter.name == "summarize" && !last {
                    continue;
                }
                let name = parameter.short.filter(|_| number % 2 == 0).unwrap_or(parameter.name);
                text += &match &parameter.kind {
                    Kind::Count => format!(":{name}={}", number >> 32),
                    // A window has room for its answer.
                    Kind::Tokens if parameter.name == "window" => format!(":{name}={}", number | 1),
                    Kind::Tokens if parameter.name == "max-output" => format!(":{name}={}", number / 2),
                    Kind::Tokens => format!(":{name}={number}"),
                    Kind::Switch => format!(":{name}={}", number % 3 == 0),
                    Kind::Word(words) => {
                        format!(":{name}={}", words[(number as usize).checked_rem(words.len()).unwrap()][0])
                    }
                    Kind::Tools => format!(":{name}={}:{name}=x", parse::escaped(&tool)),
                };
            }
            text
        },
    )
}

#[derive(serde::Serialize, serde::Deserialize)]
struct File {
    strategy: StrategySpec,
}

fn config() -> ProptestConfig {
    #[expect(clippy::disallowed_methods, reason = "how long to look is not a matter of behaviour")]
    let cases = std::env::var("EPITOME_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig { cases: cases.unwrap_or(256), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_written_is_read_again(stages in (prop::collection::vec(stage(false), 0..4), stage(true))) {
        let (mut stages, last) = stages;
        stages.push(last);
        let spec: StrategySpec = stages.join(" | ").parse().unwrap();
        prop_assert_eq!(spec.stages().len(), stages.len());
        prop_assert_eq!(&spec.to_string().parse::<StrategySpec>().unwrap(), &spec);
        let json = serde_json::to_string(&spec).unwrap();
        prop_assert_eq!(&serde_json::from_str::<StrategySpec>(&json).unwrap(), &spec);
        // TOML has no numbers over 2^63.
        if let Ok(toml) = toml::to_string(&File { strategy: spec.clone() }) {
            prop_assert_eq!(toml::from_str::<File>(&toml).unwrap().strategy, spec);
        }
    }

    #[test]
    fn no_text_panics(text in r#"(truncate|window|tool-results|summarize|:|=|\||,|\\|keep|spare|[0-9]{1,22}|\PC|[ \n"{}\[\]]){0,24}"#) {
        if let Ok(spec) = text.parse::<StrategySpec>() {
            prop_assert_eq!(spec.to_string().parse::<StrategySpec>().unwrap(), spec);
        }
        let _ = serde_json::from_str::<StrategySpec>(&text);
        let quoted = serde_json::to_string(&text).unwrap();
        let _ = serde_json::from_str::<StrategySpec>(&quoted);
        let field = format!("{{\"strategy\": \"tool-results\", {quoted}: {quoted}}}");
        let _ = serde_json::from_str::<StrategySpec>(&field);
    }
}

/// The verdicts of a strategy on turns with a picture, a call, its result and an answer; and the sizes that its summary
/// may quote.
fn decided(strategy: &MadeStrategy, messages: &[Message], percent: u64) -> (String, Vec<Tokens>) {
    let counter = ClassEstimator::new();
    let mut index = IndexBuf::with_parts(Vec::<Span>::new(), OpenCallTree::new(), Vec::<PartSpan>::new());
    for message in messages {
        let tokens = count_message(message, &counter);
        index.push_with_parts(message, tokens, |_, part| count_part(part, &counter)).unwrap();
    }
    let all = index.view().tokens();
    let goal = all.saturating_mul(percent) / 100;
    let budget = Budget::builder().window(all.saturating_mul(2)).trigger(all).reserve(0).goal(goal);
    let mut planner = Planner::new();
    match planner.plan(index.view(), &budget.build().unwrap(), Pass::Manual, strategy).unwrap() {
        Outcome::Planned(plan) => {
            (plan.verdicts().to_string(), plan.summaries().map(|gap| gap.quotes).collect())
        }
        Outcome::Unchanged(why) => panic!("{why:?}"),
    }
}

fn turns() -> Vec<Message> {
    let picture = || Media::new(MediaKind::Image, "image/png", MediaSource::Uri("file-1".into()));
    let turn = |turn: usize| {
        let id = format!("c{turn}");
        let call = ToolCall::new(id.as_str(), "read", "{}");
        [
            Message::new(
                Role::User,
                std::vec![
                    message::Part::Text(format!("Look at part {turn}, and mind the rule.").into()),
                    message::Part::Media(picture()),
                ],
            ),
            Message::new(Role::Assistant, std::vec![message::Part::ToolCall(call)]),
            Message::tool(id.as_str(), "it says nothing of use. ".repeat(60)),
            Message::assistant("It is fine."),
        ]
    };
    (0..12).flat_map(turn).collect()
}

/// Every parameter reaches its strategy: a parameter that is lost on the way would change nothing.
#[test]
fn the_words_of_users_media_and_results_go_and_stay_as_it_is_said() {
    let turns = turns();
    let of = |text: &str, percent: u64| {
        let spec: StrategySpec = text.parse().unwrap();
        let mut texts = spec.texts();
        (0..).zip(&turns).for_each(|(position, message)| texts.look_through(position, message));
        decided(&spec.strategy(texts), &turns, percent)
    };
    assert_ne!(of("agent:share=0:users=0", 30), of("agent:share=0:users=60", 30));
    let quoted = |text: &str| of(text, 40).1;
    let goal = quoted("summarize:keep-user-messages=100")[0].0;
    assert_eq!(quoted("summarize:keep-user-messages=0"), [Tokens(0)]);
    assert!(quoted("summarize:keep-user-messages=10")[0].0 < goal, "{goal}");
    // The first request is protected, and keeps its picture.
    assert_eq!(of("media:keep-turns=3", 90).0.matches('E').count(), 8);
    assert_eq!(of("media:keep-turns=0", 90).0.matches('E').count(), 10);
    // `chat` clears results; the selection by worth alone does not.
    assert!(of("chat", 60).0.contains('E') && !of("salience", 60).0.contains('E'));
}
